"""Compositions of other kernels of the registry, called by address."""
