"""NumPy's random generators in traced functions: the same numbers, to the bit."""
