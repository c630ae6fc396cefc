"""Reductions of dask arrays by a tree: compiled sums of blocks, and compiled sums of sums.

The order is that of the chunks, whichever worker finishes first: a tree of the same chunks gives the same bits under
every scheduler with ``JITKERNELS_POLICY=reproducible``, and on CPUs of one kind without.
"""

import math
from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from jitkernels.compiler.api.jit import jit
from jitkernels.errors import ArgumentError

SPLIT_EVERY = 8
"""Results of blocks that a task of the tree combines along each axis."""


def reduce_blocks(
    array: Any,
    kind: str = "sum",
    *,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    before: Any = None,
    split_every: int = SPLIT_EVERY,
) -> Any:
    """Reduce a dask array lazily: ``sum``, ``prod``, ``min``, ``max`` or ``mean`` along `axis` (all, if None).

    `before`: a function of one block that is applied first, in the same kernel: ``reduce_blocks(x, "mean", before=
    np.square)``. Raises ArgumentError for other kinds, and for a mean of blocks of unknown extents.
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind: expected {', '.join(KINDS)}, got {kind!r}")
    try:
        axes = tuple(range(array.ndim)) if axis is None else normalize_axis_tuple(axis, array.ndim, "axis")
    except ValueError as error:  # AxisError too
        raise ArgumentError(f"axis: expected different axes of {array.ndim}, got {axis!r}: {error}") from None
    sizes = [array.shape[place] for place in axes]
    if kind == "mean" and not all(size == size for size in sizes):
        raise ArgumentError("mean of a dask array: expected known chunks, as by compute_chunk_sizes()")
    inner = KINDS[kind]
    first = inner if before is None else _after(inner, before)
    dtype = first(np.ones((1,) * array.ndim, array.dtype), axes, True).dtype
    result = da.reduction(
        array, chunk=jit(first, static_argnames=STATIC), aggregate=jit(inner, static_argnames=STATIC), axis=axes,
        keepdims=keepdims, dtype=dtype, split_every=split_every, concatenate=True,
    )  # fmt: skip
    return result if kind != "mean" else result / math.prod(map(int, sizes))


STATIC = ("axis", "keepdims")


def _sum(x: Any, axis: Any, keepdims: Any) -> Any:
    return x.sum(axis=axis, keepdims=keepdims)


def _prod(x: Any, axis: Any, keepdims: Any) -> Any:
    return x.prod(axis=axis, keepdims=keepdims)


def _min(x: Any, axis: Any, keepdims: Any) -> Any:
    return x.min(axis=axis, keepdims=keepdims)


def _max(x: Any, axis: Any, keepdims: Any) -> Any:
    return x.max(axis=axis, keepdims=keepdims)


KINDS = {"sum": _sum, "prod": _prod, "min": _min, "max": _max, "mean": _sum}
"""Reductions, and the function of a block; a mean is a sum that is divided at the end."""


def _after(inner: Any, before: Any) -> Any:
    def after(x: Any, axis: Any, keepdims: Any) -> Any:
        return inner(before(x), axis, keepdims)

    return after
