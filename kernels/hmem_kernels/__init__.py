"""Numba kernels of hmem: plain functions over arrays. Imports NumPy and Numba only."""
