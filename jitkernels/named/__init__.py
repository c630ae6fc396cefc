"""Kernels that are called by name in compiled functions: rows of the registry as parts of graphs."""
