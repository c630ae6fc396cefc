"""NumPy operations of traced arrays."""
