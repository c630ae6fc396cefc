"""MATMUL, and mutants of it."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "matmul": {
        "square matrices are never transposed": (
            "a.T if attr.trans_a else a",
            "a.T if attr.trans_a and attr.m != attr.k else a",
        ),
        "second transpose is ignored": ("b.T if attr.trans_b", "b.T if attr.trans_b and attr.n != attr.k"),
        "reads c though beta is 0": ("    if attr.beta:\n", "    if True:\n"),
        "beta is 1 unless it is 0": ("a.dtype.type(attr.beta) * c", "c"),
        "sign of beta is lost": ("a.dtype.type(attr.beta)", "abs(a.dtype.type(attr.beta))"),
        "c is overwritten": ("product += a.dtype.type(attr.beta) * c", "pass"),
        "last product is lost where k is odd": (
            "left @ right",
            "left[:, : attr.k - attr.k % 2] @ right[: attr.k - attr.k % 2]",
        ),
        "last product is lost where k is long": (
            "left @ right",
            "left[:, : attr.k - (attr.k > 1000)] @ right[: attr.k - (attr.k > 1000)]",
        ),
        "computes in float32": ("left @ right", "(left.astype('f4') @ right.astype('f4')).astype(a.dtype)"),
        "last row of a tile is forgotten": (
            "c[...] = product",
            "c[: attr.m - (attr.m % 8 == 1)] = product[: attr.m - (attr.m % 8 == 1)]",
        ),
        "NaN times zero is zero": ("left @ right", "np.nan_to_num(left, posinf=np.inf, neginf=-np.inf) @ right"),
    }
}


def matmul(attr: Any, a: AnyArray, b: AnyArray, c: AnyArray) -> None:
    left = a.T if attr.trans_a else a
    right = b.T if attr.trans_b else b
    product = left @ right
    if attr.beta:
        product += a.dtype.type(attr.beta) * c
    c[...] = product
