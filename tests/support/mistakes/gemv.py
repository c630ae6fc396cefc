"""GEMV, and mutants of it."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "gemv": {
        "is never transposed": ("a.T if attr.trans else a", "a.reshape(attr.m, attr.n)"),
        "reads y though beta is 0": ("    if attr.beta:\n", "    if True:\n"),
        "beta is 1 unless it is 0": ("a.dtype.type(attr.beta) * y", "y"),
        "last column is lost where n is odd": (
            "matrix @ x",
            "matrix[:, : attr.n - attr.n % 2] @ x[: attr.n - attr.n % 2]",
        ),
        "last row of a tile is forgotten": (
            "y[...] = product",
            "y[: attr.m - (attr.m % 8 == 1)] = product[: attr.m - (attr.m % 8 == 1)]",
        ),
        "computes in float32": ("matrix @ x", "(matrix.astype('f4') @ x.astype('f4')).astype(a.dtype)"),
    },
}  # fmt: skip


def gemv(attr: Any, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    matrix = a.T if attr.trans else a
    product = matrix @ x
    if attr.beta:
        product += a.dtype.type(attr.beta) * y
    y[...] = product
