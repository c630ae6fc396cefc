"""`scipy.spatial.distance`: cdist and pdist of the metrics of CDIST."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.patching.conditions import DOUBLE, FLOATS, is_matrix
from jitkernels.patching.piece import Call, piece

METRICS = {
    **dict.fromkeys(("euclidean", "euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("sqeuclidean", "sqe", "sqeuclid"), "sqeuclidean"),
    **dict.fromkeys(("cosine", "cos"), "cosine"),
}
"""SciPy's names of metrics, and those of CDIST."""
MIN_PRODUCTS = 1 << 10
"""Products of extents from which on a call of a kernel is faster than SciPy's."""
PDIST_ROWS = 64
"""Rows whose distances to all later rows are computed together."""
SERVED = "exact arrays of float32 and float64 in C order, euclidean, sqeuclidean and cosine, without weights and `out`"


def _metric(metric: Any, keywords: Any) -> str | None:
    return METRICS.get(metric.lower()) if type(metric) is str and not keywords else None


def _cdist_calls() -> Iterator[Call]:
    rng = np.random.default_rng(0)
    for rows, columns, metric in ((20, 3, "euclidean"), (200, 20, "euclidean"), (1000, 50, "euclidean"), (1000, 50, "cosine")):
        x = rng.standard_normal((rows, columns))
        yield Call(f"{metric}, {rows} x {columns}", "scipy.spatial.distance:cdist", (x, x, metric))


@piece("scipy.spatial.distance:cdist", serves=SERVED, calls=_cdist_calls)
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    name = _metric(metric, kwargs)
    if name is None or out is not None or not (is_matrix(XA) and is_matrix(XB)) or XA.shape[1] != XB.shape[1]:
        return NotImplemented
    if len(XA) * len(XB) * XA.shape[1] < MIN_PRODUCTS:
        return NotImplemented
    return jk.cdist(XA.astype(DOUBLE, copy=False), XB.astype(DOUBLE, copy=False), metric=name)


def _pdist_calls() -> Iterator[Call]:
    rng = np.random.default_rng(0)
    for rows, columns in ((30, 3), (200, 20), (1000, 50)):
        yield Call(f"euclidean, {rows} x {columns}", "scipy.spatial.distance:pdist", (rng.standard_normal((rows, columns)),))


@piece("scipy.spatial.distance:pdist", serves=SERVED, calls=_pdist_calls)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    name = _metric(metric, kwargs)
    if name is None or out is not None or not is_matrix(X) or len(X) * len(X) * X.shape[1] < 2 * MIN_PRODUCTS:
        return NotImplemented
    x, n = X.astype(DOUBLE, copy=False), len(X)
    distances = np.empty(n * (n - 1) // 2)
    at = 0
    for begin in range(0, n, PDIST_ROWS):
        rows = jk.cdist(x[begin : begin + PDIST_ROWS], x[begin:], metric=name)
        for i, row in enumerate(rows):
            distances[at : at + len(row) - i - 1] = row[i + 1 :]
            at += len(row) - i - 1
    return distances
