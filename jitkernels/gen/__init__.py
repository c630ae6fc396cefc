"""Generated implementations: Python loop nests that LLVM compiles."""
