"""The event view: which turns are about one thing, and what stands for it (HiGMem, arXiv 2604.18349)."""
