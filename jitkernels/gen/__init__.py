"""Generated implementations: Python loop nests that numba types and LLVM compiles."""
