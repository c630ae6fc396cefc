"""The rows of `attrs/vector_arithmetic.py` by MKL: lines of the table in `vector`."""

from jitkernels.more.mkl import vector

__all__ = ["vector"]
