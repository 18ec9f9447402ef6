"""HiGMem (arXiv 2604.18349): events over the turns, as many as a turn belongs to."""
