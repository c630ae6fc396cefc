"""Everyday functions in compiled functions give what they give outside, for all rows, and have derivatives."""

import functools
from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import Keywords, Row, as_tuple, assert_right, example, function_of

import jitkernels as jk
from jitkernels.attrs.roles import fewest_results
from jitkernels.named.inlining import has_own_code

ROWS = cases.every_row()
RANDOM = np.random.default_rng(0)


def around(function: Any, result_is_one: bool) -> Any:
    """A function that calls another between operations that it could be fused with."""

    def between(given: dict[str, Any], one: float) -> Any:
        changed = {name: _times(value, one) for name, value in given.items()}
        found = function(**changed)
        return _times(found, one) if result_is_one else tuple([_times(part, one) for part in found])

    return between


def _times(value: Any, one: float) -> Any:
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return value * one if is_float else value


def in_turn(row: Row) -> str:
    """The dtypes take turns."""
    return ("float32", "float64")[[param.values[0] for param in ROWS].index(row) % 2]


def function_with(row: Row, options: Keywords) -> Any:
    """An everyday function with options, which are constants of a compiled one."""
    return functools.partial(function_of(row), **options)


def apart(given: Keywords) -> tuple[Keywords, Keywords]:
    """The arrays of a call, and its options."""
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)}
    return arrays, {name: value for name, value in given.items() if name not in arrays}


@pytest.mark.parametrize("row", ROWS)
def test_between_others_it_gives_what_it_gives_alone(row: Row) -> None:
    dtype = in_turn(row)
    _, given = example(row, dtype)
    arrays, options = apart(given)
    is_one = len(as_tuple(function_of(row)(**given))) == 1
    compiled = jk.jit(around(function_with(row, options), is_one))
    assert "left to NumPy" not in str(compiled.explain(arrays, 1.0))
    assert "0 calls of NumPy" in str(compiled.explain(arrays, 1.0))
    assert_right(row, compiled(arrays, 1.0), given, dtype)


@pytest.mark.parametrize("row", ROWS)
def test_by_itself_its_kernel_is_called(row: Row) -> None:
    dtype = in_turn(row)
    _, given = example(row, dtype)
    arrays, options = apart(given)
    called = function_with(row, options)
    compiled = jk.jit(lambda given: called(**given))
    told = str(compiled.explain(arrays))
    assert "left to NumPy" not in told
    if not has_own_code(row) and fewest_results(row) == 1:
        assert f"jk.{row.kernel_type.name.lower()}" in told or "gather" in told
    assert_right(row, compiled(arrays), given, dtype)
