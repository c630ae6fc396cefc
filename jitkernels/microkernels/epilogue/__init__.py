"""Bias and activation behind a product, and kernels that consume its rows while they are in cache."""
