"""The schedule printed as plain Python loops, which numba compiles: the second code generator beside LLVM text.

The package imports numba only where an object has to be built; printing needs none of it.
"""
