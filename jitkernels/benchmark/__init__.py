"""One suite of benchmarks: the table of all kernels, and named ones, shown, stored and compared in one way."""
