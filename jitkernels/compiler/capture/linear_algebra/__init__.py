"""Linear algebra of traced arrays: products of matrices, and small systems of equations."""
