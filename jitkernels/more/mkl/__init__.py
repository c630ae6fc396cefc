"""Intel MKL."""
