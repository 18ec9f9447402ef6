"""Runs against a real language model, to see what its replies break. No quality is measured here."""
