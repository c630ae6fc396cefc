"""Generated documentation: the kernel reference, coverage tables, type stubs."""
