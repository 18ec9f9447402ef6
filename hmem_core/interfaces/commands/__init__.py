"""The commands of `hmem`: plain functions that parse, call one method of `Memory`, and print."""
