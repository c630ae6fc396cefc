"""Transforms of loops and kernels in a graph, before it is scheduled."""
