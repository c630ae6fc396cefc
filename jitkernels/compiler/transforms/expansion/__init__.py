"""Scalar expansion: arrays in place of what inner loops compute again in each iteration of outer ones."""
