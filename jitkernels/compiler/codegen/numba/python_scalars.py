"""The functions that printed loops call, for CPython: ``from ...scalars import exp_float32``.

Each is found by its name: an operation of the table and the dtypes of its operands, computed by NumPy for one element.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.ir.elementwise_ops import DTYPES, SCALARS

REDUCED: dict[str, Callable[..., Any]] = {
    "sum_in_any_order": np.add, "prod_in_any_order": np.multiply, "maximum_reduced": np.maximum,
    "minimum_reduced": np.minimum,
}  # fmt: skip
OVERFLOWS = {"add": int.__add__, "subtract": int.__sub__, "multiply": int.__mul__}


def __getattr__(name: str) -> Callable[..., Any]:
    """Raises AttributeError for what is no operation."""
    if name.endswith("_overflows") and name.removesuffix("_overflows") in OVERFLOWS:
        of = OVERFLOWS[name.removesuffix("_overflows")]
        return lambda left, right: not -(1 << 63) <= of(int(left), int(right)) < 1 << 63
    operation, kinds, result = _parts(name)
    if operation == "cast":
        return lambda number: _as(result, number)
    if operation in REDUCED:
        return lambda left, right: _as(kinds[0], REDUCED[operation](left, right))
    if operation not in SCALARS or not kinds:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Function(operation, kinds, result)


class _Function:
    """An operation for operands of some dtypes."""

    def __init__(self, operation: str, kinds: list[str], result: str) -> None:
        self.operation, self.kinds, self.result = operation, kinds, result

    def __call__(self, *numbers: Any) -> Any:
        kinds = self.kinds if len(self.kinds) > 1 else self.kinds * len(numbers)
        operands = [_as(kind, number) for kind, number in zip(kinds, numbers, strict=True)]
        result = SCALARS[self.operation].numpy(*operands)
        return _as(self.result, result) if self.result else result[()]


def _as(dtype: str, number: Any) -> Any:
    return np.asarray(number).astype(dtype)[()]


def _parts(name: str) -> tuple[str, list[str], str]:
    """The operation, the dtypes of its operands, and that of its result where it is another one."""
    words, is_reduced = name.split("_"), name.endswith("_reduced")
    words = words[:-1] if is_reduced else words
    result = ""
    if len(words) > 2 and words[-2] == "to" and words[-1] in DTYPES:
        *words, _, result = words
    kinds: list[str] = []
    while words and words[-1] in DTYPES:
        kinds.insert(0, words.pop())
    return "_".join([*words, *(["reduced"] if is_reduced else [])]), kinds, result
