"""Measuring: the timer, the tuner, online tuning and its budget."""
