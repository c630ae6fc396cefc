"""MATMUL_BATCHED, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "matmul_batched": {
        "first pair is multiplied each time": ("a[i].T if attr.trans_a else a[i]", "a[0].T if attr.trans_a else a[0]"),
        "last pair is forgotten": ("range(attr.batch)", "range(attr.batch - (attr.batch > 4))"),
        "square pairs are never transposed": ("b[i].T if attr.trans_b", "b[i].T if attr.trans_b and attr.n != attr.k"),
        "last product is lost where k is odd": (
            "left @ right",
            "left[:, : attr.k - attr.k % 2] @ right[: attr.k - attr.k % 2]",
        ),
        "nothing is written where k is 0": ("if True:", "if attr.k:"),
        "computes in float32": ("left @ right", "(left.astype('f4') @ right.astype('f4')).astype(a.dtype)"),
    },
}  # fmt: skip


def matmul_batched(attr: Any, a: AnyArray, b: AnyArray, c: AnyArray) -> None:
    for i in range(attr.batch):
        left = a[i].T if attr.trans_a else a[i]
        right = b[i].T if attr.trans_b else b[i]
        if True:
            np.copyto(c[i], left @ right)
