"""`sklearn.metrics.pairwise`: Euclidean distances, whose checks of arguments stay scikit-learn's."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.patching.conditions import DOUBLE, are_matrices
from jitkernels.patching.native_kernels import euclidean_distances as native_distances
from jitkernels.patching.piece import Call, piece


def _calls() -> Iterator[Call]:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for rows, columns in ((20, 5), (200, 20), (2000, 10), (2000, 100)):
            x = rng.standard_normal((rows, columns)).astype(dtype)
            yield Call(f"{np.dtype(dtype).name}, {rows} x {columns}", "sklearn.metrics:pairwise_distances", (x,))


def squared_norms(x: Any, given: Any) -> Any:
    """The squared norms of the rows: those that the caller has, if they are of x's dtype, else new ones."""
    if type(given) is np.ndarray and given.dtype == x.dtype and given.size == len(x):
        return np.ascontiguousarray(given.reshape(-1))
    return np.einsum("ij,ij->i", x, x)


def are_far_from_overflow(*norms: Any) -> bool:
    """Return whether sums of any two squared norms are finite, so that nothing overflows and nothing is NaN."""
    return all(bool(one.max() < float(np.finfo(one.dtype).max) / 8) for one in norms)


@piece(
    "sklearn.metrics.pairwise:_euclidean_distances",
    serves="dense matrices of float32 and float64 in C order without NaN, far from overflow",
    calls=_calls,
)
def _euclidean_distances(
    X: Any, Y: Any, X_norm_squared: Any = None, Y_norm_squared: Any = None, squared: Any = False
) -> Any:
    return euclidean_distances(X, Y, X_norm_squared, Y_norm_squared, squared=bool(squared))


def euclidean_distances(x: Any, y: Any, x_norms: Any = None, y_norms: Any = None, *, squared: bool) -> Any:
    """Double precision by products, as scikit-learn does it; single precision by differences, which lose no digits.

    NotImplemented where scikit-learn has to do it.
    """
    if not are_matrices(x, y):
        return NotImplemented
    xx = squared_norms(x, x_norms)
    yy = xx if y is x else squared_norms(y, y_norms)
    if not are_far_from_overflow(xx, yy):
        return NotImplemented
    return native_distances(x, y, (xx, yy) if x.dtype == DOUBLE else None, squared=squared)
