"""MATMUL_INT8, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "matmul_int8": {
        "unsigned is read as signed": ("a.astype(np.int32)", "a.view(np.int8).astype(np.int32)"),
        "sums saturate in 16 bits": ("left @ right", "np.clip(left @ right, -32768, 32767)"),
        "square matrices are never transposed": ("b.T if attr.trans_b", "b.T if attr.trans_b and attr.n != attr.k"),
        "last three steps are lost": (
            "left @ right",
            "left[:, : attr.k - attr.k % 4] @ right[: attr.k - attr.k % 4]",
        ),
        "one scale for all rows": ("a_scale[:, None]", "a_scale[:1, None]"),
        "one scale for all columns": ("* b_scale", "* b_scale[:1]"),
        "last row of a tile is forgotten": (
            "c[...] = sums",
            "c[: attr.m - (attr.m % 12 == 1)] = sums[: attr.m - (attr.m % 12 == 1)]",
        ),
        "signs are corrected by the first column": ("left @ right", "(left + 128) @ right - 128 * right.sum(0)[:1]"),
    },
}  # fmt: skip


def matmul_int8(attr: Any, a: AnyArray, b: AnyArray, *rest: AnyArray) -> None:
    *scales, c = rest
    left = a.astype(np.int32)
    right = (b.T if attr.trans_b else b).astype(np.int32)
    sums: Any = left @ right
    if scales:
        a_scale, b_scale = scales
        sums = sums.astype(c.dtype) * (a_scale[:, None] * b_scale)
    c[...] = sums
