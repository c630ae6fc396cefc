"""The oracle of the reductions along one axis."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, exp, oracle, total


@oracle
def hmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.max(x, axis=1)]


@oracle
def hmin(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [-np.max(-x, axis=1)]


@oracle
def hargmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    """Return the first index of the largest element, or of NaN."""
    if x.size == 0:
        return [np.zeros(x[:, 0, :].shape if attr.n else (attr.rows, attr.remain), np.int64)]
    largest = np.max(x, axis=1, keepdims=True)
    is_largest = (x == largest) | (np.isnan(x) & np.isnan(largest))
    indices = np.where(is_largest, np.arange(attr.n)[:, np.newaxis], attr.n)
    return [indices.min(axis=1)]


@oracle
def hsum(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [total(x, 1)]


@oracle
def hmean(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [total(x, 1) / WIDE(attr.n)]


@oracle
def hvar(attr: Any, x: AnyArray) -> list[AnyArray]:
    """Centre on an element, so that the squares of a constant row are exactly zero."""
    near = x - x[:, :1]
    mean = total(near, 1) / WIDE(attr.n)
    centred = near - mean[:, np.newaxis]
    return [total(centred * centred, 1) / WIDE(max(attr.n - attr.ddof, 0))]


@oracle
def hlogsumexp(attr: Any, x: AnyArray) -> list[AnyArray]:
    if attr.n == 0:
        return [np.full((attr.rows, attr.remain), -WIDE(np.inf))]
    largest = np.max(x, axis=1)
    near = np.where(np.isfinite(largest), largest, WIDE(0))
    return [np.log(total(exp(x - near[:, np.newaxis]), 1)) + near]
