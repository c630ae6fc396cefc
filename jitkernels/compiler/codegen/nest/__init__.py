"""Lowering of loop nests to LLVM IR."""
