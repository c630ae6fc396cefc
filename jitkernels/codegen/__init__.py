"""From kernel sources (Python functions, LLVM IR, C) to object files, and the cache keys of these."""
