"""The extension `linalg` of the Array API standard: products by kernels of the registry, decompositions by NumPy."""

from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.xp.array_object import NamespaceArray
from jitkernels.xp.dispatch import by_numpy, kernel_named

NAMES = (
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
)  # fmt: skip
"""What `numpy.linalg` has by the standard's name and meaning."""
KERNELS = {"matmul": "matmul"}
"""Kernels that compute functions of float32 and float64 matrices."""
_matmul = kernel_named(KERNELS["matmul"])


def _by_kernel(x1: Any, x2: Any) -> Any:
    """The product of two matrices of one dtype of kernels; NotImplemented for others."""
    is_plain = all(isinstance(one, np.ndarray) and one.ndim == 2 and one.dtype.char in "fd" for one in (x1, x2))
    return _matmul()(x1, x2) if is_plain and x1.dtype == x2.dtype and x1.shape[1] == x2.shape[0] else NotImplemented


matmul = by_numpy("matmul", np.matmul, _by_kernel)
FUNCTIONS = {name: by_numpy(name, getattr(np.linalg, name)) for name in NAMES} | {"matmul": matmul}
globals().update(FUNCTIONS)
__all__ = sorted(FUNCTIONS)


def _matmul_operator(self: NamespaceArray, other: Any, /) -> Any:
    return matmul(self, other) if isinstance(other, NamespaceArray | np.ndarray) else NotImplemented


def _reflected(self: NamespaceArray, other: Any, /) -> Any:
    return matmul(other, self) if isinstance(other, np.ndarray) else NotImplemented


def _in_place(self: NamespaceArray, other: Any, /) -> Any:
    result = _matmul_operator(self, other)
    return result if result is NotImplemented else self._replace(result)


for _name, _operator in (("matmul", _matmul_operator), ("rmatmul", _reflected), ("imatmul", _in_place)):
    setattr(NamespaceArray, f"__{_name}__", _operator)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...  # the functions of the table
