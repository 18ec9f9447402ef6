"""Numba kernels of hmem: plain functions over arrays. Imports NumPy and Numba only.

A kernel takes arrays and numbers and writes into arrays that its caller made. It checks nothing: shapes and
dtypes are the caller's part. Input arrays are read-only (`frozen`), so that each kernel has one signature.
Importing compiles nothing; `warm` compiles everything, and what it compiled is cached on disk.
"""

from hmem_kernels import (
    affiliation,
    bestpaths,
    cascade,
    frontier,
    lexical,
    maxsim,
    paths,
    propagate,
    scan,
    select,
)
from hmem_kernels._kernel import KERNELS, compilations, frozen, kernel, warm

__all__ = [
    "KERNELS",
    "affiliation",
    "bestpaths",
    "cascade",
    "compilations",
    "frontier",
    "frozen",
    "kernel",
    "lexical",
    "maxsim",
    "paths",
    "propagate",
    "scan",
    "select",
    "warm",
]
