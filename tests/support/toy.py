"""A row of another package, with one right implementation and faulty ones to register.

The row is in the registry inside of the fixture ``toy``, and in programs that call `register`. Importing this module
does not register it, or it would be among the rows of the test files that are collected later.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from rows_of_tests import put_back, put_in, take_out

from jitkernels.attrs.schema.base import Case, KernelAttr, Tolerance, cases
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.errors import DataIndexError


class ToyAttr(KernelAttr, kernel_type="TOY_TAKE"):
    """y[i] = x[i] + table[ids[i]] for ids below m, element by element."""

    n: int
    m: int = 5
    dtype: str = "float32"

    arrays = (
        Argument("x", "in", "n", in_place=True),
        Argument("table", "in", "m"),
        Argument("ids", "in", "n", dtype="int64", domain=(0, "m")),
        Argument("y", "out", "n", in_place=True),
    )

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=1)

    def operations(self) -> float:
        return float(self.n)

    def check_data(self, arrays: Sequence[AnyArray]) -> None:
        if ((arrays[2] < 0) | (arrays[2] >= self.m)).any():
            raise DataIndexError(f"toy_take: ids: expected 0 to {self.m - 1}")

    @classmethod
    def sweep(cls) -> list[Case]:
        both = [cls(n=n, dtype=dtype) for dtype in ("float32", "float64") for n in (1, 9, 40)]
        return cases([], ci=both)


@implements(ToyAttr, name="refer")
def refer(attr: ToyAttr, x: AnyArray, table: AnyArray, ids: AnyArray, y: AnyArray) -> None:
    np.add(x, table[ids], out=y)


take_out(ToyAttr)


def nest(attr: ToyAttr, body: Callable[..., None], *, checked: bool = True) -> RangeKernel:
    """Return a range kernel over the row's arguments, with or without the check of the ids."""

    def check(x: Any, table: Any, ids: Any, y: Any, n: int, m: int) -> int:
        for i in range(n):
            if ids[i] < 0 or ids[i] >= m:
                return 1
        return 0

    arguments = attr.signature().c_arguments
    return RangeKernel(f"toy_{attr.dtype}", arguments, body, extent=4, check=check if checked else None)


def right(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]

    return nest(attr, body)


def wrong_value(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] - table[ids[i]]

    return nest(attr, body)


def forgotten_tail(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end - end % 8):
            y[i] = x[i] + table[ids[i]]

    return nest(attr, body)


def one_too_many(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]
        y[end] = x[0]

    return nest(attr, body)


def one_too_early(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]
        y[begin - 1] = x[0]

    return nest(attr, body)


def reads_beyond(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]
        if x[end] == 12345:
            y[0] = 0

    return nest(attr, body)


def changes_input(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]
            table[ids[i]] = table[ids[i]] * 2 - table[ids[i]]
        table[0] = 7

    return nest(attr, body)


def drops_nan(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            value = x[i] + table[ids[i]]
            y[i] = value if value > -1e30 else 0 * table[0]

    return nest(attr, body)


def reads_late(attr: ToyAttr) -> RangeKernel:
    """Wrong if y is x: the first output is written before the last one is computed from it."""

    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]
        for i in range(begin, end):
            y[i] = x[i] + table[ids[i]]

    return nest(attr, body)


def unchecked(attr: ToyAttr) -> RangeKernel:
    def body(x: Any, table: Any, ids: Any, y: Any, n: int, m: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            y[i] = x[i] + table[max(0, min(ids[i], m - 1))]

    return nest(attr, body, checked=False)


WRONG: dict[str, Callable[[ToyAttr], RangeKernel]] = {
    f.__name__: f for f in (wrong_value, forgotten_tail, changes_input, drops_nan, reads_late, unchecked)
}
OUTSIDE: dict[str, Callable[[ToyAttr], RangeKernel]] = {
    f.__name__: f for f in (one_too_many, one_too_early, reads_beyond)
}


@contextlib.contextmanager
def registered() -> Iterator[type[ToyAttr]]:
    """Register the row inside the block."""
    with put_back(ToyAttr):
        yield ToyAttr


def register() -> None:
    """Register the row for the rest of a program."""
    put_in(ToyAttr)
