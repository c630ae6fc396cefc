"""Thresholds of convolutions."""

MIN_PARALLEL_OPERATIONS = 1 << 20
"""Least operations of a convolution with threads: 10 us of one core at 100 GFLOP/s."""
