"""The schemas of `attrs/vector_arithmetic.py` by MKL: entries of the table in `vector`."""

from jitkernels.more.mkl import vector

__all__ = ["vector"]
