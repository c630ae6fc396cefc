"""Everyday functions have the derivatives of their references, against finite differences, for all float rows."""

from typing import Any

import cases
import numpy as np
import pytest
from test_everyday import Row, as_tuple, example, function_of
from test_everyday_in_jit import apart

import jitkernels as jk
from jitkernels.attrs.schema.signature import AnyArray

STEP = 1e-5
MADE_BY_THE_COMPILER = {"CONV2D_PACKED", "CONV2D_TRANSPOSE_PACKED", "CONV2D_WINOGRAD", "LSTM_PACKED", "GRU_PACKED"}
"""Compiled functions call these in place of others, once derivatives are there."""
ROWS = [
    param
    for param in cases.every_row()
    if param.values[0].kernel_type.name not in MADE_BY_THE_COMPILER
    and any(array.dtype is None for array in param.values[0].arrays if array.role == "in")
    and any(array.dtype is None for array in param.values[0].arrays if array.role == "out")
]


def loss_of(row: Row, given: dict[str, Any]) -> tuple[Any, dict[str, AnyArray]]:
    """A random-dot loss of the float results, and the float arrays that it is of."""
    arrays, _ = apart(given)
    floats = {name: value for name, value in arrays.items() if value.dtype.kind == "f"}
    fixed = {name: value for name, value in given.items() if name not in floats}
    random = np.random.default_rng(1)
    found = as_tuple(function_of(row)(**given))
    weights = [random.normal(size=one.shape) if one.dtype.kind == "f" else None for one in found]
    function = function_of(row)

    def loss(floats: dict[str, AnyArray]) -> Any:
        results = function(**floats, **fixed)
        listed = results if isinstance(results, tuple) else (results,)
        total = 0.0
        for one, weight in zip(listed, weights, strict=True):
            if weight is not None:
                total = total + np.sum(one * weight)
        return total

    return loss, floats


@pytest.mark.parametrize("row", ROWS)
def test_gradients_match_finite_differences(row: Row) -> None:
    _, given = example(row, "float64")
    loss, at = loss_of(row, given)
    gradient = jk.grad(loss)(at)
    random = np.random.default_rng(2)
    along = {name: random.normal(size=value.shape) for name, value in at.items()}

    def beside(step: float) -> float:
        return float(loss({name: value + step * along[name] for name, value in at.items()}))

    difference = (8 * (beside(STEP) - beside(-STEP)) - (beside(2 * STEP) - beside(-2 * STEP))) / (12 * STEP)
    found = sum(float(np.sum(gradient[name] * along[name])) for name in at)
    size = sum(float(np.sum(np.abs(gradient[name] * along[name]))) for name in at)
    assert abs(found - difference) <= 1e-6 * size + 1e-9


def test_gradients_of_compiled_functions_with_several_kernels() -> None:
    x, scale = np.random.default_rng(0).normal(size=(5, 8)), np.ones(8)

    def loss(x: AnyArray, scale: AnyArray) -> Any:
        return np.sum(jk.softmax(jk.layer_norm(x, scale, np.zeros(8)) * 2) ** 2)

    @jk.jit
    def step(x: AnyArray, scale: AnyArray) -> Any:
        value, gradient = jk.value_and_grad(loss)(x, scale)
        return value, x - 0.1 * gradient, jk.sort(gradient)

    value, better, ordered = step(x, scale)
    assert value == pytest.approx(loss(x, scale))
    assert loss(better, scale) < value
    assert np.allclose(ordered, np.sort(jk.grad(loss)(x, scale)))


def test_second_order() -> None:
    x, along = np.array([0.3, -0.7, 1.1]), np.array([1.0, 0.5, -2.0])
    gradient = jk.grad(lambda x: np.sum(jk.vgelu(x) ** 2))
    found = jk.jvp(gradient, (x,), (along,))[1]
    expected = (gradient(x + STEP * along) - gradient(x - STEP * along)) / (2 * STEP)
    assert np.allclose(found, expected, atol=1e-8)


def test_gradient_of_sigmoid_at_zero() -> None:
    for function in (jk.vsigmoid, jk.vsilu):
        value = jk.grad(lambda x, function=function: np.sum(function(x)))(np.zeros(3))
        assert value.tolist() == [0.25 if function is jk.vsigmoid else 0.5] * 3


def test_gradients_by_float_options() -> None:
    """Numbers among the options are arguments like others."""
    a, b, c, d = (np.full(3, value) for value in (1.0, 0.5, 0.1, 0.2))

    def total(rate: float) -> Any:
        return np.sum(jk.adam(a, b, c, d, lr=rate)[0])

    assert jk.grad(total)(0.01) == pytest.approx((total(0.011) - total(0.009)) / 0.002)


def test_indices_are_checked_even_if_unused() -> None:
    table, ids = np.arange(6.0).reshape(3, 2), np.array([0, 2, 2])
    assert jk.grad(lambda table: np.sum(jk.gather(table, ids)))(table).tolist() == [[1, 1], [0, 0], [2, 2]]
    assert jk.grad(lambda table: np.sum(table[ids]))(table).tolist() == [[1, 1], [0, 0], [2, 2]]
    with pytest.raises(jk.DataIndexError, match="got 3 at"):
        jk.grad(lambda table: np.sum(jk.gather(table, ids + 1)))(table)
    with pytest.raises(IndexError):
        jk.grad(lambda table: np.sum(table[ids + 1]))(table)


def test_references_with_loops_are_loops() -> None:
    """One code for all lengths of a sequence."""
    weights = np.random.default_rng(0).normal(size=(8, 2))

    def loss(weights: AnyArray, x: AnyArray) -> Any:
        return np.sum(jk.lstm(x, weights, weights)[0] ** 2)

    gradient, along = jk.grad(loss), np.ones((8, 2))
    for steps in (40, 90):
        x = np.random.default_rng(1).normal(size=(steps, 3, 2))
        expected = (loss(weights + STEP * along, x) - loss(weights - STEP * along, x)) / (2 * STEP)
        assert np.sum(gradient(weights, x)) == pytest.approx(expected, rel=1e-6)
    assert gradient.stats().compiles == 1
