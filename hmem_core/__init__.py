"""hmem: a memory engine that lives inside LLM agents."""
