"""Scalar maths that generated kernels inline, written so that LLVM vectorizes the calling loop."""
