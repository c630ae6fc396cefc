"""Scalar maths that generated kernels inline, written so that LLVM vectorises the calling loop."""
