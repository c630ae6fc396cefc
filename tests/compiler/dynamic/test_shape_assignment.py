"""Assigning to ``shape``: arrays that the function makes change, and names that share one see it."""

from typing import Any

import numpy as np
import pytest
from computed_calls import Program, check
from jitted import reasons

import jitkernels as jk

pytestmark = pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # of NumPy 2.5
X = np.random.default_rng(0).standard_normal(24)


def of_product(x: Any) -> Any:
    z = x * 2
    z.shape = (4, len(x) // 4)
    return z.sum(0), z


def with_inferred_extent(x: Any) -> Any:
    z = x + 1
    view = z[: len(x) // 2]
    other = z
    z.shape = (-1, 2)
    z[0] = 5.0
    return other, view, z.T @ z


def of_view(x: Any) -> Any:
    z = x[:8]
    z.shape = 2, 4
    z += 1
    return z.sum(1)


def in_loop(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        row = x[:6] * i
        row.shape = (2, 3)
        total += row[1].sum()
    return total


def of_impossible_size(x: Any) -> Any:
    z = x * 2
    z.shape = (5, 7)
    return z


@pytest.mark.parametrize("function", [of_product, with_inferred_extent, of_view, in_loop])
def test_shapes_of_own_arrays(function: Program) -> None:
    check(function, [(X,), (np.arange(40.0),)])


def test_impossible_shapes_raise() -> None:
    with pytest.raises(ValueError, match=r"cannot reshape array of size 24 into shape \(5,7\)"):
        jk.jit(of_impossible_size)(X.copy())


def test_other_assignments_fall_back() -> None:
    def of_argument(x: Any) -> Any:
        x.shape = (6, 4)
        return x.sum(0)

    def of_alias(x: Any) -> Any:
        z = x
        z.shape = (6, 4)
        return x.sum(0)

    def of_outer_array(x: Any) -> Any:
        z = x * 2
        for i in range(len(x)):
            if x[i] > 100:
                z.shape = (6, 4)
        return z

    def of_dtype(x: Any) -> Any:
        z = x * 2
        z.dtype = np.int64
        return z

    for function, reason in (
        (of_argument, "assigns to an attribute, 'shape'"),
        (of_alias, "the shape of an argument"),
        (of_outer_array, "array from outside of it"),
        (of_dtype, "assigns to an attribute, 'dtype'"),
    ):
        compiled = jk.jit(function)
        given, own = X.copy(), X.copy()
        np.testing.assert_allclose(compiled(given), function(own))
        assert given.shape == own.shape
        assert any(reason in text for text in reasons(compiled)), reasons(compiled)
