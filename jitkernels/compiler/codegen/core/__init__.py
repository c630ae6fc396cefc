"""LLVM IR building blocks that loop nests and regions share."""
