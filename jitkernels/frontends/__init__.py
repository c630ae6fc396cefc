"""Front ends of the graph compiler: `jit` makes graphs of ordinary NumPy functions."""
