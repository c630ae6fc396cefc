"""Concretization: ints of values known only at run time, and attributes of classes and modules as arguments."""

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

CASES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: int(x.sum()),
    "place": lambda x: x[int(x.argmax())],
    "quotient": lambda x: int((x > 2).sum()) / len(x),
    "elements": lambda x: [int(one) for one in x[:2]],
    "list": lambda x: [int(x.argmin()), float(x.max())],
    "large": lambda x: int(x.max()) * 10**10,
    "all": lambda x: int((x > 0).all()),
}


@pytest.mark.parametrize("function", CASES.values(), ids=CASES)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "uint64", "float64"])
def test_ints_of_elements(function: Callable[[Any], Any], dtype: str) -> None:
    x = np.arange(1, 12).astype(dtype)
    if dtype == "uint64":
        x[1] = 2**63 + 5
    found, expected = jk.jit(function)(x), function(x)
    assert found == expected
    assert type(found) is type(expected)


def _scaled(owner: Any, x: Any) -> Any:
    return x * owner.scale


@pytest.mark.parametrize(
    "owner", [type("Model", (), {"scale": 2.0}), types.ModuleType("model")], ids=["class", "module"]
)
@pytest.mark.parametrize("values", [(2.0, 3.0), (1, 2), (np.ones(9), np.zeros(9))], ids=["float", "int", "array"])
def test_changed_attributes_are_guarded(owner: Any, values: tuple[Any, ...]) -> None:
    compiled, x = jk.jit(_scaled), np.ones(9)
    for one in values:
        owner.scale = one
        assert np.array_equal(compiled(owner, x), x * one)
