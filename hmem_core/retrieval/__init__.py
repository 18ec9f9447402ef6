"""Reading: filters, search, and the assembly of a context."""
