"""The path of a call to its kernel: everyday functions, the kernel cache, kernels."""
