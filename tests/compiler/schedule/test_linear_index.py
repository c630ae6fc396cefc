"""Loops over raveled arrays: elements of contiguous arrays are read by one index, others by as many as they need."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.control_flow.linear_index import raveled
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node


def clipped(x: Any) -> Any:
    flat = x.ravel()
    result = np.empty(flat.shape[0])
    for i in range(flat.shape[0]):
        result[i] = flat[i] if flat[i] > 0 else -2 * flat[i]
    return result


def by_size(x: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total = total * 0.5 + x.reshape(-1)[i] * (i % 3)
    return total


def backwards(x: Any) -> Any:
    flat = x.reshape(-1)
    result = [flat[i] * 2 for i in range(flat.shape[0] - 1, -1, -1)]
    return np.array(result)


def written(x: Any) -> Any:
    result = np.zeros(x.shape)
    flat = result.reshape(-1)
    for i in range(1, flat.shape[0]):
        flat[i] = flat[i - 1] * 0.5 + x.ravel()[i]
    return result


ARRAYS = {
    "matrix": np.arange(35.0).reshape(5, 7) - 17,
    "short rows": np.arange(40.0).reshape(10, 4) - 17,
    "single": np.arange(5.0).reshape(1, 5) - 2,
    "cube": np.arange(60.0).reshape(3, 4, 5) - 30,
    "transposed": (np.arange(35.0).reshape(5, 7) - 17).T,
    "sliced": (np.arange(70.0).reshape(10, 7) - 17)[::2, 1:6],
    "broadcast": np.broadcast_to(np.arange(7.0) - 3, (5, 7)),
}


@pytest.mark.per_push
@pytest.mark.parametrize("function", [clipped, by_size, backwards, written])
def test_loops(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function)
    for array in ARRAYS.values():
        for _ in range(2):
            np.testing.assert_allclose(compiled(array), function(array), rtol=1e-13)


def test_bounds_of_sizes_need_no_checks() -> None:
    """The loop below the number of elements of an array has no bounds check, and no division."""
    compiled = jk.jit(clipped, strict=True)
    array = np.ones((30, 17))
    compiled(array)
    assert "bounded" not in str(compiled.explain(array))


def _parts(number: Node, size: int) -> list[Node]:
    return [elementwise(name, number, builder.constant(size, "int64")) for name in ("floor_divide", "remainder")]


@pytest.mark.per_push
@pytest.mark.parametrize(("stride", "size", "is_linear"), [(7, 7, True), (8, 7, False), (14, 7, False), (0, 7, False)])
def test_rule_1(stride: int, size: int, is_linear: bool) -> None:
    """Only where the rows follow each other is an element found by its number."""
    number = Node("parameter", (), "int64", ())
    steps, numbers = raveled((stride, 1), _parts(number, size))
    assert (numbers == [number] and steps == [1]) == is_linear


def test_rule_1_of_other_numbers() -> None:
    first, second = (Node("parameter", (), "int64", ()) for _ in range(2))
    indices = [_parts(first, 7)[0], _parts(second, 7)[1]]
    assert raveled((7, 1), indices) == ([7, 1], indices)


@pytest.mark.per_push
@pytest.mark.parametrize(("mask", "is_linear"), [(7, True), (3, False)])
def test_rule_2(mask: int, is_linear: bool) -> None:
    number = Node("parameter", (), "int64", ())
    indices = [
        elementwise("right_shift", number, builder.constant(3, "int64")),
        elementwise("bitwise_and", number, builder.constant(mask, "int64")),
    ]
    assert (raveled((8, 1), indices)[1] == [number]) == is_linear
