"""Columns: the growable arrays a memory's state is made of, and their checkpoint on disk."""
