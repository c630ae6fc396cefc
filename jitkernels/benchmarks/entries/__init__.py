"""The benchmarks of the suite, one module each; `jitkernels.benchmarks.suite` imports them all."""
