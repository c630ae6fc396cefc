"""Lowering of loop and branch regions to LLVM IR."""
