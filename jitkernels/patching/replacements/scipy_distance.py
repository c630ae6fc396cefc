"""`scipy.spatial.distance`: cdist and pdist of the metrics of CDIST."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.dispatch.operators import everyday
from jitkernels.patching.conditions import DOUBLE, is_plain
from jitkernels.patching.piece import Call, piece

_kernel_cdist = everyday("cdist")

METRICS = {
    **dict.fromkeys(("euclidean", "euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("sqeuclidean", "sqe", "sqeuclid"), "sqeuclidean"),
    **dict.fromkeys(("cosine", "cos"), "cosine"),
}
"""SciPy's names of metrics, and those of CDIST."""
MIN_CDIST_PRODUCTS, MIN_PDIST_PRODUCTS = 1 << 10, 1 << 19
"""Products of extents from which on a call of a kernel is faster than SciPy's."""
PDIST_ROWS = 64
"""Rows whose distances to all later rows are computed together."""
DISTANCES = "exact matrices of float32 and float64; euclidean, sqeuclidean and cosine, without weights"


def _metric(metric: Any, keywords: Any) -> Any:
    return METRICS.get(metric.lower()) if type(metric) is str and not keywords else None


def _is_served(x: Any) -> bool:
    return is_plain(x) and x.ndim == 2 and x.size > 0


def _is_target(out: Any, shape: tuple[int, ...]) -> bool:
    """Return whether there is no `out`, or one that SciPy accepts."""
    return out is None or (
        is_plain(out, (DOUBLE,)) and out.shape == shape and out.flags.c_contiguous and out.flags.writeable
    )


def _cdist_calls() -> Iterator[Call]:
    rng = np.random.default_rng(0)
    for rows, columns, metric in (
        (25, 3, "euclidean"),
        (200, 20, "euclidean"),
        (1000, 50, "euclidean"),
        (1000, 50, "cosine"),
    ):
        x = rng.standard_normal((rows, columns))
        yield Call(f"{metric}, {rows} x {columns}", "scipy.spatial.distance:cdist", (x, x, metric))


@piece("scipy.spatial.distance:cdist", serves=DISTANCES, calls=_cdist_calls)
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    name = _metric(metric, kwargs)
    if name is None or not (_is_served(XA) and _is_served(XB)) or XA.shape[1] != XB.shape[1]:
        return NotImplemented
    if len(XA) * len(XB) * XA.shape[1] < MIN_CDIST_PRODUCTS or not _is_target(out, (len(XA), len(XB))):
        return NotImplemented
    return _kernel_cdist(XA.astype(DOUBLE, copy=False), XB.astype(DOUBLE, copy=False), metric=name, out=out)


def _pdist_calls() -> Iterator[Call]:
    rng = np.random.default_rng(0)
    for rows, columns in ((30, 3), (100, 20), (200, 20), (1000, 50)):
        yield Call(
            f"euclidean, {rows} x {columns}", "scipy.spatial.distance:pdist", (rng.standard_normal((rows, columns)),)
        )


@piece("scipy.spatial.distance:pdist", serves=DISTANCES, calls=_pdist_calls)
def pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    name = _metric(metric, kwargs)
    if name is None or not _is_served(X) or len(X) * len(X) * X.shape[1] < MIN_PDIST_PRODUCTS:
        return NotImplemented
    x, n = np.ascontiguousarray(X, DOUBLE), len(X)
    if not _is_target(out, (n * (n - 1) // 2,)):
        return NotImplemented
    distances = np.empty(n * (n - 1) // 2) if out is None else out
    at = 0
    for begin in range(0, n, PDIST_ROWS):
        rows = _kernel_cdist(x[begin : begin + PDIST_ROWS], x[begin:], metric=name)
        for i, row in enumerate(rows):
            distances[at : at + len(row) - i - 1] = row[i + 1 :]
            at += len(row) - i - 1
    return distances
