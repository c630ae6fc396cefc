"""`sklearn.utils.extmath`, `sklearn.preprocessing` and paired distances: one pass over the rows of matrices."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.api.jit import jit
from jitkernels.dispatch.operators import everyday
from jitkernels.patching.conditions import are_finite, are_matrices, is_matrix
from jitkernels.patching.piece import piece
from jitkernels.patching.sample_arrays import calls_of

_kernel_softmax = everyday("softmax")

C_MATRICES = "dense matrices of float32 and float64 in C order"
FINITE = f"{C_MATRICES}, finite"


@jit
def _squared_norms(x: Any) -> Any:
    return (x * x).sum(axis=1)


@jit
def _norms(x: Any) -> Any:
    return np.sqrt((x * x).sum(axis=1))


@piece("sklearn.utils.extmath:row_norms", serves=C_MATRICES, calls=lambda: calls_of("sklearn.utils.extmath:row_norms"))
def row_norms(X: Any, squared: Any = False) -> Any:
    if not is_matrix(X):
        return NotImplemented
    with np.errstate(all="ignore"):  # scikit-learn's einsum raises no warnings
        return _squared_norms(X) if squared else _norms(X)


@piece(
    "sklearn.utils.extmath:softmax", serves=f"{FINITE}, copied", calls=lambda: calls_of("sklearn.utils.extmath:softmax")
)
def softmax(X: Any, copy: Any = True) -> Any:
    return _kernel_softmax(X, axis=1) if is_matrix(X) and copy is True and are_finite(X) else NotImplemented


@functools.cache
def _normalize(norm: str, least: float) -> Callable[..., Any]:
    def normalized(x: Any) -> Any:
        if norm == "l1":
            norms = np.abs(x).sum(axis=1)
        elif norm == "max":
            norms = np.abs(x).max(axis=1)
        else:
            norms = np.sqrt((x * x).sum(axis=1))
        return x / np.where(norms < least, 1, norms)[:, np.newaxis]

    return jit(normalized)


def normalized_rows(x: Any, norm: str = "l2") -> Any:
    """Rows divided by their norms, unless these are nearly 0, as scikit-learn does it."""
    return _normalize(norm, 10 * float(np.finfo(x.dtype).eps))(x)


@piece(
    "sklearn.preprocessing._data:normalize",
    serves=f"{FINITE}, rows, copied",
    calls=lambda: calls_of("sklearn.preprocessing:normalize"),
)
def normalize(X: Any, norm: Any = "l2", *, axis: Any = 1, copy: Any = True, return_norm: Any = False) -> Any:
    if not is_matrix(X) or axis != 1 or copy is not True or return_norm is not False or not are_finite(X):
        return NotImplemented
    return normalized_rows(X, norm)


@jit
def _paired_euclidean(x: Any, y: Any) -> Any:
    return np.sqrt(((x - y) * (x - y)).sum(axis=1))


@jit
def _paired_manhattan(x: Any, y: Any) -> Any:
    return np.abs(x - y).sum(axis=1)


def _paired(function: Callable[..., Any], x: Any, y: Any) -> Any:
    if not are_matrices(x, y) or x.shape != y.shape or not (are_finite(x) and are_finite(y)):
        return NotImplemented
    return function(x, y)


@piece(
    "sklearn.metrics.pairwise:paired_euclidean_distances",
    serves=FINITE,
    calls=lambda: calls_of("sklearn.metrics.pairwise:paired_euclidean_distances", arrays=2),
)
def paired_euclidean_distances(X: Any, Y: Any) -> Any:
    return _paired(_paired_euclidean, X, Y)


@piece(
    "sklearn.metrics.pairwise:paired_manhattan_distances",
    serves=FINITE,
    calls=lambda: calls_of("sklearn.metrics.pairwise:paired_manhattan_distances", arrays=2),
)
def paired_manhattan_distances(X: Any, Y: Any) -> Any:
    return _paired(_paired_manhattan, X, Y)
