"""Growable columns and the drivers that run kernels over them."""
