"""Measuring: the one timer, the tuner, and the store of its results."""
