"""SegTreeMem (Temporal Order Matters for Agentic Memory, arXiv 2606.04555): a segment tree over the turns."""
