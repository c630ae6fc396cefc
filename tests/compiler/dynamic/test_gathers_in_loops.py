"""Updates and selections at indices of computed number in loops, where memory for them has no size to plan."""

from typing import Any

import numpy as np
import pytest
from computed_calls import Program, check

import jitkernels as jk

P, FULL = np.array([0, 3, 3, 5, 10]), np.array([0, 3, 5, 10])
IX = np.array([1, 0, 4, -2, 3, 9, 2, 0, -4, 5])
TWICE = [np.array([1, 0, 1, -2, 3, 9, 9, 0, -10, 5]), np.array([0, 1, 2, -1, 9, 5, 6, 7, 8, 9])]
X = np.random.default_rng(0).standard_normal(10)
M = np.random.default_rng(1).standard_normal((10, 6))
POINTERS = [P, np.array([0, 0, 0]), np.array([10, 0, 12, -3, 2]), np.array([0]), np.arange(11), P.astype(np.int32)]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


@program
def selected_sums(p: Any, ix: Any, x: Any, m: Any) -> Any:
    out = np.zeros((len(p) - 1, 6))
    for i in range(len(p) - 1):
        part, places = x[p[i] : p[i + 1]], ix[p[i] : p[i + 1]]
        out[i, 0] = part[places > i].sum()
        out[i, 1] = places[part > 0].sum() + np.sum(part[part < 0])
        out[i, 2] = part[places > 2].prod()
        out[i, 3] = part[part == part].sum()
        out[i, 4] = np.any(part[places > 0]) + 2 * np.all(part[places > 0])
        out[i, 5] = len(part[places > 1])
    return out


@program
def selected_extremes(p: Any, ix: Any, x: Any, m: Any) -> Any:
    """No element may be selected: NumPy raises."""
    total = 0.0
    for i in range(len(p) - 1):
        part = x[p[i] : p[i + 1]]
        total += part[part > -9].max() - part[part < 9].min() + part[part < 9].mean()
    return total


@program
def selected_operands(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        part, places = x[p[i] : p[i + 1]], ix[p[i] : p[i + 1]]
        some = part[places > 0]
        total += (some * 2).sum() + some @ some + (some * part[places > 0]).sum()
        if len(some) > 1:
            total += some[1] + some.argmax()
    return total


@program
def selected_before_a_write(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        part = x[p[i] : p[i + 1]]
        some = part[part > 0]
        x[0] += 1.0
        total += some.sum()
    return total


@program
def selected_places(p: Any, ix: Any, x: Any, m: Any) -> Any:
    for i in range(len(p) - 1):
        places = ix[p[i] : p[i + 1]]
        x[places[places > 0]] = i
        x[places[places < 0]] += 1
    return x


@program
def added(p: Any, ix: Any, x: Any, m: Any) -> Any:
    y = np.zeros(10)
    for i in range(len(p) - 1):
        y[ix[p[i] : p[i + 1]]] += x[p[i] : p[i + 1]] * m[i, 0]
    return y


@program
def updated_arguments(p: Any, ix: Any, x: Any, m: Any) -> Any:
    for i in range(len(p) - 1):
        places = ix[p[i] : p[i + 1]]
        x[places] *= 2
        x[places] = x[places] * x[places] - m[i, 1]
        x[places] -= i
        m[i, 2] += x[places].sum()


@program
def updated_from_other_places(p: Any, ix: Any, x: Any, m: Any) -> Any:
    for i in range(len(p) - 1):
        places = ix[p[i] : p[i + 1]]
        x[places] += x[places[::-1]]
        x[places] = x[places] + x[p[i] : p[i + 1]]
    return x


@program
def updated_after_other_writes(p: Any, ix: Any, x: Any, m: Any) -> Any:
    for i in range(len(p) - 1):
        places = ix[p[i] : p[i + 1]]
        before = x[places] * 3
        x[1] += 1
        x[4] -= 1
        x[places] = before
    return x


@program
def updated_from_another_view(p: Any, ix: Any, x: Any, m: Any) -> Any:
    y, column = x[1:], m[:, 1]
    for i in range(len(p) - 1):
        places = ix[p[i] : p[i + 1]] // 2
        y[places] = x[places] + y[places]
        column[places] = m[:, 2][places] - column[places]
    return x, m


@program
def updated_columns(p: Any, ix: Any, x: Any, m: Any) -> Any:
    column, every = m[:, 1], x[::2]
    for i in range(len(p) - 1):
        column[ix[p[i] : p[i + 1]]] *= 3
        every[ix[p[i] : p[i + 1]] // 3] -= 1
    return x, m


@program
def updated_at_their_own_values(p: Any, ix: Any, x: Any, m: Any) -> Any:
    for i in range(len(p) - 1):
        ix[ix[p[i] : p[i + 1]]] += 1
    return ix


BREAKS = {
    selected_operands, selected_before_a_write, selected_places, updated_from_other_places,
    updated_at_their_own_values, updated_after_other_writes, updated_from_another_view,
}  # fmt: skip
"""Programs that the compiler leaves to NumPy, in parts."""


@pytest.mark.parametrize("function", [one for one in PROGRAMS if one not in BREAKS], ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_programs_are_those_of_numpy(function: Program, dtype: str) -> None:
    scale = 10 if dtype == "int64" else 1
    x, m = (scale * X).astype(dtype), (scale * M).astype(dtype)
    check(function, [(pointers, IX, x, m) for pointers in POINTERS])
    check(function, [(P, indices, x, m) for indices in (IX, *TWICE, IX)])
    check(function, [(P, np.repeat(IX, 2)[::2], np.repeat(x, 3)[::3], m[:, ::-1])])


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_programs_with_breaks(function: Program, dtype: str) -> None:
    compiled, scale = jk.jit(function), 10 if dtype == "int64" else 1
    for pointers in (P, P, FULL):
        for indices in (IX, *TWICE):
            ours, theirs = (
                [pointers.copy(), indices.copy(), (scale * X).astype(dtype), (scale * M).astype(dtype)]
                for _ in range(2)
            )
            outcomes = []
            for call, given in ((compiled, ours), (function, theirs)):
                try:
                    outcomes.append(call(*given))
                except (ValueError, IndexError) as error:
                    outcomes.append(str(error))
            if type(outcomes[1]) is str or outcomes[1] is None:
                assert outcomes[0] == outcomes[1]
            else:
                for one, right in zip(*([*got] if type(got) is tuple else [got] for got in outcomes), strict=True):
                    assert np.asarray(one).dtype == np.asarray(right).dtype
                    np.testing.assert_allclose(one, right, rtol=1e-4 if dtype == "float32" else 1e-12, atol=1e-5)
            for one, right in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(one, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("function", [added, updated_arguments], ids=lambda one: one.__name__)
def test_indices_out_of_bounds_raise(function: Program) -> None:
    for k in (0, 4, 9):
        for outside in (10, -11):
            indices = IX.copy()
            indices[k] = outside
            check(function, [(P, IX, X, M), (P, indices, X, M)])


def test_long_rows_in_no_order() -> None:
    """Of which the compiled code does not compare all pairs."""
    p, x = np.array([0, 600, 1000]), np.random.default_rng(2).standard_normal(1000)
    for indices in (np.arange(1000), np.random.default_rng(2).permutation(1000)):

        def add(p: Any, ix: Any, x: Any) -> Any:
            y = np.zeros(1000)
            for i in range(len(p) - 1):
                y[ix[p[i] : p[i + 1]]] += x[p[i] : p[i + 1]]
            return y

        check(add, [(p, indices, x)])
