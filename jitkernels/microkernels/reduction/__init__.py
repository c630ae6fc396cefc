"""Reductions, normalizations and scans over rows and columns."""
