"""Generated implementations: Python range kernels that LLVM compiles."""
