"""Compositions of other kernels of the registry, calling their addresses."""
