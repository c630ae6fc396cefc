"""Axes, options and lists of everyday calls, parsed without Python where they have the usual types."""

from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import Row, arrays_only, by_position, example, function_of
from test_everyday_forms import DTYPES, bits, compiled, numbers

import jitkernels as jk
from jitkernels.attrs.schema.base import FLOATS
from jitkernels.errors import JitKernelsError


@pytest.mark.parametrize("dtype", DTYPES[1:9])
def test_axis_may_be_any_integer(dtype: str) -> None:
    x = numbers(60, "float32").reshape(3, 4, 5)
    kind = np.dtype(dtype).type
    for axis in (0, 1, 2, -1, -3) if dtype.startswith("i") else (0, 1, 2):
        assert bits(compiled(jk.softmax, x, axis=kind(axis))) == bits(jk.softmax(x, axis=axis))
    with pytest.raises(JitKernelsError, match="axis"):
        jk.softmax(x, axis=kind(3))


class First:
    """An int, as far as Python is concerned."""

    def __index__(self) -> int:
        return 0


@pytest.mark.parametrize("axis", [First(), np.array(0)], ids=lambda axis: type(axis).__name__)
def test_axis_may_be_an_index_object(axis: Any) -> None:
    x = numbers(60, "float32").reshape(3, 4, 5)
    assert bits(jk.softmax(x, axis=axis)) == bits(jk.softmax(x, axis=0))


class Failing:
    """What is no number after all."""

    def __index__(self) -> int:
        raise ValueError("none today")

    def __repr__(self) -> str:
        return "failing"


@pytest.mark.parametrize("axis", [np.bool_(True), np.float64(1), True, 1.0, np.array([1]), Failing()], ids=repr)
def test_axis_rejects_other_numbers(axis: Any) -> None:
    x = numbers(6, "float32").reshape(2, 3)
    jk.softmax(x, axis=1)
    with pytest.raises(JitKernelsError, match="axis: expected an int"):
        jk.softmax(x, axis=axis)


class Unspeakable(Failing):
    """What cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError("not today either")

    __str__ = __float__ = __eq__ = __hash__ = __repr__  # type: ignore[assignment]  # none of them does what it should


STRANGE = (Unspeakable(), 10**5000, "x" * 10**6, np.zeros((2,) * 20), [[0] * 9] * 10**6)


@pytest.mark.parametrize("row", [param for param in cases.every_row() if param.values[0].options])
def test_errors_of_options_are_short(row: Row) -> None:
    _, given = example(row)
    for option in row.options:
        for wrong in STRANGE:
            with pytest.raises(JitKernelsError, match=option) as caught:
                function_of(row)(**given | {option: wrong})
            assert len(str(caught.value)) < 400


@pytest.mark.parametrize("kind", [str, float])
def test_options_of_derived_types(kind: type) -> None:
    """No method that the derived type overrides is called."""
    strange = type("Strange", (Unspeakable, kind), {"__hash__": kind.__hash__})
    x = numbers(6, "float32").reshape(2, 3)
    if kind is str:
        assert bits(jk.seq_pool(x, pool=strange("mean"))) == bits(jk.seq_pool(x, pool="mean"))
    else:
        with pytest.raises(JitKernelsError, match="eps: expected a finite number"):
            jk.layer_norm(x, eps=strange(1.0))


class Empty(tuple[Any, ...]):
    """A tuple that hides what is in it."""

    __slots__ = ()

    def __iter__(self) -> Any:
        raise ValueError("nothing to see")

    def __len__(self) -> int:
        return 0


def test_out_in_a_derived_tuple() -> None:
    x, out = numbers(6, "float32"), np.zeros(6, np.float32)
    assert jk.vmul(x, x, out=Empty((out,))) is out
    assert np.array_equal(out, x * x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", [param for param in cases.every_row() if param.values[0].floats])
def test_defaults_equal_explicit_options(row: Row, dtype: str) -> None:
    """Omitted, by name and by position: all are rounded alike."""
    _, given = example(row, dtype)
    options = {name: row.parameters().parameters[name].default for name in row.floats if name in row.options}
    plain = {key: value for key, value in given.items() if key not in options}
    for rounded in (options, {name: float(np.dtype(dtype).type(value)) for name, value in options.items()}):
        expected = bits(compiled(function_of(row), **plain, **rounded))
        assert bits(compiled(function_of(row), **plain)) == expected
        assert bits(compiled(function_of(row), *by_position(row, plain))) == expected
        assert bits(compiled(function_of(row), **arrays_only(plain, np.asfortranarray), **rounded)) == expected


@pytest.mark.parametrize(
    "value", [[], [1.0], [[1.0, 2.0], [3.0, 4.0]], [[]], [[], []], ([1.5], (2.5,)), [[[1.0]]]], ids=str
)
def test_lists_are_arrays(value: Any) -> None:
    assert bits(jk.vmul(value, value)) == bits(np.multiply(np.asarray(value), value))
    assert bits(jk.vmul(value, 2.0)) == bits(np.multiply(np.asarray(value), 2.0))


@pytest.mark.parametrize(
    "value", [[1.0, 2], [1, 2], [[1.0], [2]], [np.float32(1), 2.0], [True, 1.0], [[1.0, 2.0], (3, 4.0)]], ids=str
)
def test_lists_of_mixed_numbers(value: Any) -> None:
    assert bits(jk.vmul(value, value)) == bits((np.asarray(value) * np.asarray(value)).astype(np.float64))


@pytest.mark.parametrize("value", [[[1.0], [2.0, 3.0]], [1.0, [2.0]], [[1.0], 2.0], [[1.0], None], [None]], ids=str)
def test_invalid_lists_are_rejected(value: Any) -> None:
    with pytest.raises(JitKernelsError, match="x: expected real numbers"):
        jk.vmul(value, 2.0)
