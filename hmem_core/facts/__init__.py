"""The fact view: units of knowledge, what they rest on, and how they are rewritten (HiGram)."""
