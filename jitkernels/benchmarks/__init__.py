"""The benchmark suite: the table of all kernels and named benchmarks, shown, stored and compared in one format."""
