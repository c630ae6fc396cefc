"""Identities of reductions and scans, and the elementwise operations that combine two partial results."""

import math

from jitkernels.codegen.python.types import NUMBERS

COMBINING = {
    "sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum", "any": "logical_or", "all": "logical_and",
}  # fmt: skip


def identity(kind: str, dtype: str, zero: float = 0.0) -> float | int:
    """The identity of a reduction; `zero`: that of float sums.

    +0 for reductions, as NumPy's sum of negative zeros is +0; -0 for scans, as -0 + x is x for every x.
    """
    sort = NUMBERS[dtype]
    if kind in ("sum", "prod"):
        number = zero if kind == "sum" else 1.0
        return number if sort.kind == "float" else int(number)
    if kind in ("any", "all"):
        return kind == "all"
    is_least = kind in ("max", "argmax")
    if sort.kind == "float":
        return -math.inf if is_least else math.inf
    if sort.kind == "bool":
        return not is_least
    bits = 8 * sort.size - sort.is_signed
    return (-(1 << bits) if sort.is_signed else 0) if is_least else (1 << bits) - 1
