"""The reductions along one axis, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE, clipped

__all__ = ["MISTAKES", "clipped"]

_ENDS = {
    "without the last element": ("over = x", "over = x[:, : max(1, attr.n - 1)]"),
    "without the first element": ("over = x", "over = x[:, min(1, attr.n - 1) :]"),
    "last row is forgotten": ("y[...] = result", "y[: max(1, attr.rows - 1)] = result[: max(1, attr.rows - 1)]"),
    "the neighbour's column": ("over = x", "over = np.roll(x, 1, axis=2)"),
}
_SUMS = {
    **_ENDS,
    "half precision on the way": ("x.astype(WIDE)", "x.astype('f2').astype(WIDE)"),
    "takes an infinity for the largest number": ("x.astype(WIDE)", "clipped(x).astype(WIDE)"),
    "drops NaN": ("x.astype(WIDE)", "np.nan_to_num(x, posinf=np.inf, neginf=-np.inf).astype(WIDE)"),
}
MISTAKES = {
    "hmax": {
        **_ENDS,
        "drops NaN": ("np.max(", "np.fmax.reduce("),
        "of absolute values": ("np.max(over", "np.max(np.abs(over)"),
        "begins with zero": ("axis=1)", "axis=1, initial=0)"),
    },
    "hmin": {
        **_ENDS,
        "drops NaN": ("np.min(", "np.fmin.reduce("),
        "of absolute values": ("np.min(over", "np.min(np.abs(over)"),
        "begins with zero": ("axis=1)", "axis=1, initial=0)"),
    },
    "hargmax": {
        **_ENDS,
        "the last of equals": ("np.argmax(over, axis=1)", "attr.n - 1 - np.argmax(over[:, ::-1], axis=1)"),
        "of absolute values": ("np.argmax(over", "np.argmax(np.abs(over)"),
        "drops NaN": ("np.argmax(over", "np.argmax(np.nan_to_num(over, nan=-np.inf, posinf=np.inf)"),
    },
    "hsum": {**_SUMS, "in one chain": ("over.sum(axis=1)", "np.add.reduce(x.transpose(1, 0, 2), axis=0)")},
    "hmean": {
        **_SUMS,
        "divided by n + 1 for long rows": ("/ attr.n", "/ (attr.n + (attr.n > 900))"),
        "divided by the elements of all rows": ("/ attr.n", "/ (attr.n * attr.remain)"),
    },
    "hvar": {
        **_SUMS,
        "in one pass": (
            "np.square(near - mean).sum(axis=1)",
            "(np.square(x).sum(axis=1) - np.square(x.sum(axis=1)) / x.dtype.type(attr.n))",
        ),
        "ddof is ignored": ("attr.n - attr.ddof", "attr.n"),
        "ddof is one": ("attr.n - attr.ddof", "max(1, attr.n - 1)"),
        "negative divisor": ("max(attr.n - attr.ddof, 0)", "(attr.n - attr.ddof - 1)"),
    },
    "hlogsumexp": {
        **_ENDS,
        "no maximum": ("np.where(np.isfinite(largest), largest, 0)", "0 * np.zeros_like(largest)"),
        "maximum is not added": ("+ near", "+ 0 * near"),
        "infinite maximum is subtracted": ("np.where(np.isfinite(largest), largest, 0)", "largest"),
        "logarithm to base 2": ("np.log(", "np.log2("),
    },
}


def hmax(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x
    result = np.max(over, axis=1)
    y[...] = result


def hmin(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x
    result = np.min(over, axis=1)
    y[...] = result


def hargmax(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x
    result = np.argmax(over, axis=1)
    y[...] = result


def hsum(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x.astype(WIDE)
    result = over.sum(axis=1)
    y[...] = result


def hmean(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x.astype(WIDE)
    result = over.sum(axis=1) / attr.n
    y[...] = result


def hvar(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x.astype(WIDE)
    near = over - over[:, :1]
    mean = near.sum(axis=1, keepdims=True) / attr.n
    result = np.square(near - mean).sum(axis=1) / WIDE(max(attr.n - attr.ddof, 0))
    y[...] = result


def hlogsumexp(attr: Any, x: AnyArray, y: AnyArray) -> None:
    over = x.astype(WIDE)
    largest = over.max(axis=1, initial=-np.inf)
    near = np.where(np.isfinite(largest), largest, 0)
    result = np.log(np.exp(over - near[:, np.newaxis]).sum(axis=1)) + near
    y[...] = result
