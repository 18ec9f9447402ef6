"""Bringing conversations into a memory: readers of files, and the pipeline that adds what they yield."""
