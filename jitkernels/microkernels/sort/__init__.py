"""Sorting networks, merge sort, and integer keys of floats."""
