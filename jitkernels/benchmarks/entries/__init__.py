"""The benchmarks of the suite, one module each; `jitkernels.benchmark.suite` imports them all."""
