"""Tracing: from a Python function and its arguments to a graph."""
