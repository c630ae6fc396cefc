"""Options of everyday calls at their limits: the dispatcher accepts and refuses what Python and the reference do.

One object serves all values of such an option, so that machine code meets values which no attr of that shape could
have, and values so large that arithmetic with them wraps.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday_forms import compiled

import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import AttrError, JitKernelsError

Row = Any
ELEMENTS = 24
WHOLE = (0, 1, 2, 3, 4, 5, 6, 7, 23, 24, 25, 33, 1 << 31, (1 << 62) + 1, (1 << 63) - 1)
REAL = (0.0, -0.0, 5e-324, 1e-46, 1e-30, 0.5, 1.0, -1.0, 3e38, 1e308)
MOST = 1 << 20
"""Results that are longer are left out: those of a size that may be as large."""


def numbers_of(row: Row) -> Iterator[tuple[str, Any]]:
    """The options of a row that are numbers, each with values to try."""
    for name, field in row.known_fields().items():
        if name in row.options and field.kind in ("whole", "float"):
            outputs = {symbol for a in row.arrays if a.role == "out" for e in a.extents for symbol in e.symbols}
            values: Any = REAL if field.kind == "float" else WHOLE
            yield name, [v for v in values if name not in outputs or v < MOST]


def result_of(function: Any, given: dict[str, Any]) -> Any:
    """The arrays that a call gives, or None where it is refused."""
    try:
        with np.errstate(all="ignore"):
            results = function(**given)
    except JitKernelsError:
        return None
    return as_tuple(results)


def calls_of(row: Row) -> Iterator[dict[str, Any]]:
    names = [*row.parameters().parameters]
    for call in ordinary_calls_of(row, ELEMENTS):
        yield dict(zip(names, call.arguments, strict=False)) | dict(call.named)


def floats_of(row: Row) -> Iterator[tuple[str, Any]]:
    """The options of a row that are floats."""
    for name, field in row.known_fields().items():
        if name in row.options and field.kind == "float":
            yield name, field


NAMES = [row.kernel_type.name.lower() for row in all_schemas() if any(numbers_of(row))]


@pytest.mark.parametrize("name", NAMES)
def test_numbers_at_their_limits(name: str) -> None:
    row = next(row for row in all_schemas() if row.kernel_type.name.lower() == name)
    function = getattr(jk, name)
    plain = next(iter(calls_of(row)))
    for option, values in numbers_of(row):
        for _ in range(2):
            function(**plain)  # by now compiled code takes such calls
        for value in values:
            given = plain | {option: value}
            for each in range(2):
                got = result_of(function, given)
                with jk.use(implementation="refer"):
                    expected = result_of(function, given)
                assert (got is None) == (expected is None), f"{option}={value}, call {each}: {got}"
                for one, right in zip(got or (), expected or (), strict=True):
                    assert (one.dtype, one.shape) == (right.dtype, right.shape)
                    if not np.allclose(one, right, rtol=1e-4, atol=1e-6, equal_nan=True):
                        one, right = promised(row, given, one), promised(row, given, right)
                    np.testing.assert_allclose(
                        one, right, rtol=1e-4, atol=1e-6, err_msg=f"{option}={value}, call {each}"
                    )


def promised(row: Row, given: dict[str, Any], result: Any) -> Any:
    """The elements of the one result for which the row promises something, as no intermediate overflows."""
    call = row.call(**given)
    (array,) = call.attr.signature().outputs
    output = result.reshape(array.shape)
    with np.errstate(all="ignore"):
        (bound,) = call.attr.absolute_terms([*call.inputs, output])
    return output[~np.isnan(bound)]


FINE = (1 + 2.0**-40, 1e-60, 1e60, 0.1)
"""Numbers that float64 holds, and float32 does not."""


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.kernel_type.name.lower()) for row in all_schemas() if any(floats_of(row))]
)
def test_float_options_have_float64_bits(row: Row) -> None:
    """Compiled code passes a kernel the same bits as Python does: those of a float64 array."""
    function = getattr(jk, row.kernel_type.name.lower())
    plain = next(iter(calls_of(row)))
    wide = {key: value.astype(np.float64) if is_single(value) else value for key, value in plain.items()}
    for option, field in floats_of(row):
        for value in (v for v in FINE if field.least <= v <= field.most):
            given = wide | {option: value}
            try:
                call = row.call(**given)
            except AttrError:  # such as of a lower end above the upper one
                continue
            assert getattr(call.attr, option) == value
            with jk.use(implementation="refer"):
                reference = result_of(function, given)
            results = [np.zeros(o.shape, o.numpy) for o in call.attr.signature().outputs]
            KernelFuncs.cache().of_class(call.attr).run_as(call.attr, [*call.inputs, *results])
            for kind in (float, np.float64):
                got = as_tuple(compiled(function, **given | {option: kind(value)}))
                for one, own, right in zip(got, results, reference, strict=True):
                    assert one.tobytes() == own.tobytes(), f"{option}={value}"
                    np.testing.assert_allclose(one, right, rtol=1e-9, err_msg=f"{option}={value}")


OF_NUMPY: dict[str, Any] = {"bool": (False, np.bool_), "whole": (2, np.int16), "float": (0.5, np.float32)}
"""A value of an option of each kind, and NumPy's type of such."""


@pytest.mark.parametrize("row", [param for param in cases.every_row() if param.values[0].options])
def test_numpy_scalars_are_valid_options(row: Row) -> None:
    """Compiled code treats them like the Python numbers."""
    function = getattr(jk, row.kernel_type.name.lower())
    plain = next(iter(calls_of(row)))
    for option, field in row.known_fields().items():
        if option in row.options and field.kind in OF_NUMPY and option not in plain:
            value, kind = OF_NUMPY[field.kind]
            with contextlib.suppress(JitKernelsError):  # such as of groups that do not fit
                right = as_tuple(function(**plain | {option: value}))
                got = as_tuple(compiled(function, **plain | {option: kind(value)}))
                assert [one.tobytes() for one in got] == [one.tobytes() for one in right], option


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)


def is_single(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.float32
