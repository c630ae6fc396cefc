"""Declared limits of numeric options: each way of calling refuses what exceeds them, and nothing else.

The values are generated from the registry: each limit and its neighbours in float64 and float32, which rounding to the
arrays' dtype could bring back between the limits.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from rows_of_tests import put_back, take_out
from test_everyday_forms import compiled
from test_option_limits import MOST, as_tuple, calls_of, result_of

import jitkernels as jk
from jitkernels.attrs.schema.base import Case, KernelAttr, Tolerance, cases, real, whole
from jitkernels.attrs.schema.fields import MAX_WHOLE, Field
from jitkernels.attrs.schema.registry import all_schemas, implements
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.dispatch.operators import Everyday
from jitkernels.dispatch.option_types import ordered
from jitkernels.errors import AttrError, JitKernelsError, RegistrationError

Row = Any


class ToyLimitsAttr(KernelAttr, kernel_type="TOY_LIMITS"):
    """y[i] = x[i] * above + below + around + k: numbers with limits above, below and around zero."""

    n: int
    above: float = real(default=1.0, least=0.5, most=2.0, samples=(0.5,))
    below: float = real(default=-1.0, least=-2.0, most=-0.5, samples=(-2.0,))
    around: float = real(default=0.0, least=-1.0, most=1.0, samples=(1.0,))
    endless: float = real(default=-3.0, most=-2.5)
    k: int = whole(default=3, least=2, most=5, is_size=False)
    dtype: str = "float32"
    arrays = (Argument("x", "in", "n"), Argument("y", "out", "n"))
    floats = ("above", "below", "around", "endless")
    options = ("above", "below", "around", "endless", "k")

    def tolerance(self) -> Tolerance:
        return Tolerance(ulp=4)

    def operations(self) -> float:
        return float(4 * self.n)

    @classmethod
    def sweep(cls) -> list[Case]:
        return cases([], ci=[cls(n=9, dtype=dtype) for dtype in ("float32", "float64")])


def of_numbers(attr: ToyLimitsAttr, x: AnyArray, y: AnyArray) -> None:
    number = x.dtype.type
    y[...] = x * number(attr.above) + number(attr.below) + number(attr.around) + number(attr.endless) + attr.k


def nest_of_numbers(attr: ToyLimitsAttr) -> RangeKernel:
    number: Any = np.dtype(attr.dtype).type

    def body(
        x: Any, y: Any, n: int, k: int, above: Any, below: Any, around: Any, endless: Any, begin: int, end: int
    ) -> None:
        for i in range(begin, end):
            y[i] = x[i] * number(above[0]) + number(below[0]) + number(around[0]) + number(endless[0]) + number(k)

    return RangeKernel(f"toy_limits_{attr.dtype}", attr.signature().c_arguments, body, extent=2)


implements(ToyLimitsAttr, name="refer")(of_numbers)
implements(ToyLimitsAttr, name="gen")(nest_of_numbers)
take_out(ToyLimitsAttr)


def around_limits(field: Field) -> Iterator[float | int]:
    """Each finite limit of a number, and its neighbours on both sides."""
    for limit in (field.least, field.most):
        if field.kind == "whole":
            yield from (int(limit) + step for step in (-1, 0, 1) if abs(int(limit) + step) <= MAX_WHOLE)
        elif math.isfinite(limit):
            yield limit
            for kind in (np.float64, np.float32):
                yield from (float(np.nextafter(kind(limit), kind(to))) for to in (-math.inf, math.inf))


def limited(row: Row) -> list[tuple[str, Field]]:
    """The options of a row that are numbers with limits."""
    ends = (-math.inf, math.inf)
    return [
        (name, field)
        for name, field in row.known_fields().items()
        if name in row.options and field.kind in ("whole", "float") and (field.least, field.most) != ends
    ]


def check_limits(row: Row, function: Callable[..., Any], refer: Callable[..., Any], dtype: str) -> None:
    """Each value beyond a limit is refused by name; others do what the reference does, in compiled code."""
    plain = next(iter(calls_of(row)))
    plain = {name: in_dtype(value, dtype) for name, value in plain.items()}
    lengths = {s for a in row.arrays if a.role == "out" for e in a.extents for s in e.symbols}
    for option, field in limited(row):
        for value in around_limits(field):
            if option in lengths and value > MOST:
                continue
            given = plain | {option: value}
            fits = field.least <= value <= field.most
            if not fits:
                for _ in range(2):
                    with pytest.raises(AttrError, match=option):
                        function(**given)
                continue
            expected = result_of(refer, given)
            if expected is None:  # such as of an end below another
                assert result_of(function, given) is None, f"{option}={value}"
                continue
            for got, right in zip(as_tuple(compiled(function, **given)), expected, strict=True):
                np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6, err_msg=f"{option}={value}")


def in_dtype(value: Any, dtype: str) -> Any:
    is_single = isinstance(value, np.ndarray) and value.dtype == np.float32
    return value.astype(dtype) if is_single else value


def in_reference(function: Callable[..., Any], **given: Any) -> Any:
    with jk.use(implementation="refer"):
        return function(**given)


ROWS = [pytest.param(row, id=row.kernel_type.name.lower()) for row in all_schemas() if limited(row)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("row", ROWS)
def test_everyday_calls_reject_values_beyond_a_limit(row: Row, dtype: str) -> None:
    function = getattr(jk, row.kernel_type.name.lower())
    check_limits(row, function, partial(in_reference, function), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_limits_of_any_sign(dtype: str) -> None:
    """No row of ours has a limit above zero, or both below it; rows of others may."""
    with put_back(ToyLimitsAttr):
        holder = Everyday(ToyLimitsAttr)
        x = np.arange(5, dtype=dtype)
        names = [name for name, _ in limited(ToyLimitsAttr)]
        assert names == ["above", "below", "around", "endless", "k"]
        for name, field in limited(ToyLimitsAttr):
            for value in {*around_limits(field), 0.5 * field.least, 2 * field.most, -field.most, 0, -0.0}:
                if not math.isfinite(value) or (field.kind == "whole" and value != int(value)):
                    continue
                number = int(value) if field.kind == "whole" else value
                if not field.least <= number <= field.most:
                    for _ in range(2):
                        with pytest.raises(AttrError, match=f"{name}: expected"):
                            holder.callable(x, **{name: number})
                    continue
                fields: dict[str, Any] = {name: number}
                attr = ToyLimitsAttr(n=5, dtype=dtype, **fields)
                expected = np.empty_like(x)
                of_numbers(attr, x, expected)
                np.testing.assert_allclose(compiled(holder.callable, x, **{name: number}), expected, atol=1e-5)


@pytest.mark.parametrize("row", [param for param in ROWS if getattr(param.values[0], "floats", ())])
def test_compiled_functions_reject_values_beyond_a_limit(row: Row) -> None:
    """A number that is an argument of a compiled function is checked in each call."""
    function = getattr(jk, row.kernel_type.name.lower())
    plain = next(iter(calls_of(row)))
    arrays = {name: value for name, value in plain.items() if isinstance(value, np.ndarray)}
    others = {name: value for name, value in plain.items() if name not in arrays}
    for option, field in limited(row):
        if field.kind != "float":
            continue

        def with_number(given: dict[str, Any], number: float, option: str = option) -> Any:
            return function(**given, **{**others, option: number})

        fused = jk.jit(with_number)
        for value in around_limits(field):
            try:
                expected = as_tuple(function(**arrays, **{**others, option: value}))
            except JitKernelsError as error:
                with pytest.raises(type(error), match=option):
                    fused(arrays, value)
                continue
            for got, right in zip(as_tuple(fused(arrays, value)), expected, strict=True):
                np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-6, err_msg=f"{option}={value}")


def test_ordered_bits_compare_like_floats() -> None:
    numbers = [-math.inf, -1e300, -2.0, -1.0, -5e-324, 0.0, 5e-324, 1.0, 2.0, 1e300, math.inf]
    found = [ordered(number) for number in numbers]
    assert found == sorted(set(found))
    assert ordered(-0.0) == ordered(0.0) == 0


@pytest.mark.parametrize(
    ("declares", "message"),
    [
        (lambda: real(default=0.5, least=0.1), "least: expected a number that float32 can hold, got 0.1"),
        (lambda: real(default=0.5, most=0.7), "most: expected a number that float32 can hold, got 0.7"),
        (lambda: real(default=0.5, least=1.0), "expected a default and samples from 1 to inf, got 0.5"),
        (lambda: real(default=0.5, most=1.0, samples=(2.0,)), "from -inf to 1, got 2.0"),
        (lambda: whole(default=1, least=2), "from 2 to .*, got 1"),
        (lambda: whole(least=2, most=5, samples=(3, 6)), "from 2 to 5, got 6"),
    ],
)
def test_invalid_limits_are_rejected(declares: Callable[[], Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        declares()
