"""`sklearn.metrics.pairwise`: kernels, which are products or distances and one pass over them, and nearest rows."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitkernels.compiler.api.jit import jit
from jitkernels.patching.conditions import DOUBLE, are_finite, are_matrices, is_number
from jitkernels.patching.native_kernels import nearest_rows
from jitkernels.patching.piece import Call, piece
from jitkernels.patching.replacements.sklearn_distances import are_far_from_overflow, euclidean_distances, squared_norms
from jitkernels.patching.replacements.sklearn_rows import FINITE, normalized_rows
from jitkernels.patching.sample_arrays import calls_of, normal

SHAPES = ((20, 5), (200, 20), (1000, 50))


def _calls(name: str) -> Callable[[], Iterator[Call]]:
    return lambda: calls_of(f"sklearn.metrics.pairwise:{name}", shapes=SHAPES)


def _matrices(x: Any, y: Any) -> tuple[Any, Any] | None:
    """The two matrices, the second of which is by default the first; None where they are not served."""
    y = x if y is None else y
    if not are_matrices(x, y) or not are_finite(x) or not (y is x or are_finite(y)):
        return None
    return x, y


def _factor(gamma: Any, columns: int) -> float | None:
    return 1.0 / columns if gamma is None else float(gamma) if is_number(gamma) else None


@jit
def _exponentials(k: Any, factor: Any) -> Any:
    return np.exp(k * factor)


@piece("sklearn.metrics.pairwise:rbf_kernel", serves=FINITE, calls=_calls("rbf_kernel"))
def rbf_kernel(X: Any, Y: Any = None, gamma: Any = None) -> Any:
    matrices = _matrices(X, Y)
    if matrices is None or (factor := _factor(gamma, X.shape[1])) is None:
        return NotImplemented
    squares = euclidean_distances(*matrices, squared=True)
    return NotImplemented if squares is NotImplemented else _exponentials(squares, -factor, out=squares)


@functools.cache
def _powers(degree: int) -> Callable[..., Any]:
    def powers(k: Any, factor: Any, constant: Any) -> Any:
        return (k * factor + constant) ** degree

    return jit(powers)


@piece(
    "sklearn.metrics.pairwise:polynomial_kernel",
    serves=f"{FINITE}, whole degrees up to 8",
    calls=_calls("polynomial_kernel"),
)
def polynomial_kernel(X: Any, Y: Any = None, degree: Any = 3, gamma: Any = None, coef0: Any = 1) -> Any:
    matrices = _matrices(X, Y)
    if matrices is None or (factor := _factor(gamma, X.shape[1])) is None or not is_number(coef0):
        return NotImplemented
    if type(degree) is not int or not 1 <= degree <= 8:
        return NotImplemented
    products = matrices[0] @ matrices[1].T
    return _powers(degree)(products, factor, float(coef0), out=products)


@jit
def _tangents(k: Any, factor: Any, constant: Any) -> Any:
    return np.tanh(k * factor + constant)


@piece("sklearn.metrics.pairwise:sigmoid_kernel", serves=FINITE, calls=_calls("sigmoid_kernel"))
def sigmoid_kernel(X: Any, Y: Any = None, gamma: Any = None, coef0: Any = 1) -> Any:
    matrices = _matrices(X, Y)
    if matrices is None or (factor := _factor(gamma, X.shape[1])) is None or not is_number(coef0):
        return NotImplemented
    products = matrices[0] @ matrices[1].T
    return _tangents(products, factor, float(coef0), out=products)


@piece("sklearn.metrics.pairwise:cosine_similarity", serves=FINITE, calls=_calls("cosine_similarity"))
def cosine_similarity(X: Any, Y: Any = None, dense_output: Any = True) -> Any:
    matrices = _matrices(X, Y)
    if matrices is None:
        return NotImplemented
    x = normalized_rows(X)
    return x @ (x if matrices[1] is X else normalized_rows(matrices[1])).T


@jit
def _paired_distances(x: Any, y: Any) -> Any:
    return np.sqrt(((x - y) * (x - y)).sum(axis=1))


def _nearest(x: Any, y: Any, axis: Any, metric: Any, options: Any) -> Any:
    """The matrices in double precision and the indices of the nearest rows; None where they are not served."""
    if metric != "euclidean" or options or not are_matrices(x, y) or axis not in (0, 1):
        return None
    x, y = (x, y) if axis == 1 else (y, x)
    x, y = x.astype(DOUBLE, copy=False), y.astype(DOUBLE, copy=False)
    if len(y) >= 1 << 31 or not are_far_from_overflow(squared_norms(x, None), squared_norms(y, None)):
        return None
    labels = np.empty(len(x), np.int32)
    nearest_rows(x, y, labels)
    return x, y, labels.astype(np.intp)


def _nearest_calls(name: str) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        for dtype in (np.float32, np.float64):
            for rows, others, columns in ((50, 5, 5), (1000, 100, 20), (20_000, 64, 20)):
                x = normal((rows, columns), dtype)
                case = f"{np.dtype(dtype).name}, {rows} and {others} x {columns}"
                yield Call(case, f"sklearn.metrics:{name}", (x, x[:others].copy()))

    return calls


NEAREST = f"{FINITE}, euclidean"


@piece(
    "sklearn.metrics.pairwise:pairwise_distances_argmin",
    serves=NEAREST,
    calls=_nearest_calls("pairwise_distances_argmin"),
)
def pairwise_distances_argmin(
    X: Any, Y: Any, *, axis: Any = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> Any:
    found = _nearest(X, Y, axis, metric, metric_kwargs)
    return NotImplemented if found is None else found[2]


@piece(
    "sklearn.metrics.pairwise:pairwise_distances_argmin_min",
    serves=NEAREST,
    calls=_nearest_calls("pairwise_distances_argmin_min"),
)
def pairwise_distances_argmin_min(
    X: Any, Y: Any, *, axis: Any = 1, metric: Any = "euclidean", metric_kwargs: Any = None
) -> Any:
    found = _nearest(X, Y, axis, metric, metric_kwargs)
    if found is None:
        return NotImplemented
    x, y, labels = found
    return labels, _paired_distances(x, y[labels])
