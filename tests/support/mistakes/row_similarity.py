"""DOT, SQEUCLIDEAN and COSINE, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "dot": {
        "sum in one chain": ("np.sum(x * y, axis=-1, dtype=WIDE)", "np.cumsum(x * y, axis=-1)[:, -1] if attr.n else 0"),
        "last product is lost where the length is odd": ("x * y", "(x * y)[:, : attr.n - (attr.n % 8 == 7)]"),
        "last row is forgotten": (
            "z[...] = np.sum(x * y, axis=-1, dtype=WIDE)",
            "z[: max(1, attr.rows - 1)] = np.sum(x * y, axis=-1, dtype=WIDE)[: max(1, attr.rows - 1)]",
        ),
        "all against the first row": ("x * y", "x * (y[:1] if attr.rows else y)"),
        "computes in float32": ("x * y", "x.astype('f4') * y"),
        "NaN counts as nothing": ("np.sum(", "np.nansum("),
    },
    "sqeuclidean": {
        "sum of squares less twice the product": (
            "np.sum(np.square(x - y), axis=-1, dtype=WIDE)",
            "(x * x).sum(axis=-1) + (y * y).sum(axis=-1) - 2 * (x * y).sum(axis=-1)",
        ),
        "a root is taken": ("np.sum(np.square(x - y), axis=-1, dtype=WIDE)", "np.linalg.norm(x - y, axis=-1)"),
        "sum of absolute differences": ("np.square", "np.abs"),
        "last element is lost": ("np.square(x - y)", "np.square(x - y)[:, : max(1, attr.n - 1)]"),
        "the mean": (", dtype=WIDE)", ", dtype=WIDE) / max(1, attr.n)"),
    },
    "cosine": {
        "similarity": ("np.maximum(1 - along, 0)", "along"),
        "below zero": ("np.maximum(1 - along, 0)", "1.001 * (1 - along) - 1e-3"),
        "length of y is left out": ("x_length * y_length", "x_length"),
        "length of x for both": ("x_length * y_length", "x_length * x_length"),
        "zero vectors are near to all": ("x_length * y_length", "np.maximum(x_length * y_length, 1e-30)"),
        "opposite is near": ("(np.sum(x * y, axis=-1, dtype=WIDE))", "np.abs(np.sum(x * y, axis=-1, dtype=WIDE))"),
    },
}


def dot(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    z[...] = np.sum(x * y, axis=-1, dtype=WIDE)


def sqeuclidean(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    z[...] = np.sum(np.square(x - y), axis=-1, dtype=WIDE)


def cosine(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    x_length = np.sqrt(np.sum(x * x, axis=-1, dtype=WIDE))
    y_length = np.sqrt(np.sum(y * y, axis=-1, dtype=WIDE))
    along = (np.sum(x * y, axis=-1, dtype=WIDE)) / (x_length * y_length)
    z[...] = np.maximum(1 - along, 0)
