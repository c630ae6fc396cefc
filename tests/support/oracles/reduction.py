"""The truth about the reductions along one axis."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, exp, oracle, total


@oracle
def hmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.max(x, axis=1)]


@oracle
def hmin(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [-np.max(-x, axis=1)]


@oracle
def hargmax(attr: Any, x: AnyArray) -> list[AnyArray]:
    """The first of those that are the largest, or NaN where that is the largest."""
    if x.size == 0:
        return [np.zeros(x[:, 0, :].shape if attr.n else (attr.rows, attr.remain), np.int64)]
    largest = np.max(x, axis=1, keepdims=True)
    found = (x == largest) | (np.isnan(x) & np.isnan(largest))
    places = np.where(found, np.arange(attr.n)[:, np.newaxis], attr.n)
    return [places.min(axis=1)]


@oracle
def hsum(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [total(x, 1)]


@oracle
def hmean(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [total(x, 1) / WIDE(attr.n)]


@oracle
def hvar(attr: Any, x: AnyArray) -> list[AnyArray]:
    """Centred on an element, so that the squares of a constant row are exactly zero."""
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
