"""Scheduling: fusion of a graph into loop nests, products, kernel calls and NumPy calls."""
