"""Slices at bounds that are read from arrays: sparse matrices, segments, windows that other arrays choose."""

from typing import Any

import numpy as np
import pytest
from computed_calls import Program, check

import jitkernels as jk

P = np.array([0, 3, 3, 5, 10])
X = np.random.default_rng(0).standard_normal(10)
IX = np.array([1, 0, 4, -2, 3, 9, 9, 0, -10, 5])
FULL = np.array([0, 3, 5, 10])
M = np.random.default_rng(1).standard_normal((10, 6))

POINTERS = [
    P,
    np.array([0, 0, 0]),
    np.array([10, 0, 12, -3, 2]),  # reversed, behind the end, from the end
    np.array([-100, 100, -1, 10]),
    np.array([0]),
    np.arange(11),
    P.astype(np.int32),
    P.astype(np.uint8),
]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


@program
def row_sums(p: Any, ix: Any, x: Any, m: Any) -> Any:
    out = np.zeros(len(p) - 1)
    for i in range(len(p) - 1):
        for j in ix[p[i] : p[i + 1]]:
            out[i] += x[j]
    return out


@program
def enumerated(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        for k, j in enumerate(ix[p[i] : p[i + 1]]):
            total += x[j] * (k + 1)
    return total


@program
def zipped(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        start, stop = max(p[i], 0), min(max(p[i + 1], 0), len(x))
        for k in range(start, stop):
            total += x[k] * x[ix[k]]
    return total


@program
def dots(p: Any, ix: Any, x: Any, m: Any) -> Any:
    out = np.zeros(len(p) - 1)
    for i in range(len(p) - 1):
        out[i] = x[p[i] : p[i + 1]] @ x[ix[p[i] : p[i + 1]]]
    return out


@program
def npbench_spmv(p: Any, ix: Any, x: Any, m: Any) -> Any:
    y = np.empty(p.size - 1, x.dtype)
    for i in range(p.size - 1):
        cols = ix[p[i] : p[i + 1]]
        vals = x[p[i] : p[i + 1]]
        y[i] = vals @ x[cols]
    return y


@program
def products(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        a = x[p[i] : p[i + 1]]
        total += np.sum(a * a - 2.0 * a + 1) + np.dot(a, np.abs(a)) + (a > 0).sum() + np.sum(np.where(a > 0, a, -a))
    return total


@program
def assigned(p: Any, ix: Any, x: Any, m: Any) -> Any:
    for i in range(len(p) - 1):
        x[p[i] : p[i + 1]] = i
        ix[p[i] : p[i + 1]] += 2
        x[p[i] : p[i + 1]] *= 0.5
    return x.sum()


@program
def assigned_slices(p: Any, ix: Any, x: Any, m: Any) -> Any:
    out = np.zeros(10)
    for i in range(len(p) - 1):
        out[p[i] : p[i + 1]] = x[p[i] : p[i + 1]] * 2 + i
        out[p[i] : p[i + 1]] -= m[p[i] : p[i + 1], 2]
    return out


@program
def lengths(p: Any, ix: Any, x: Any, m: Any) -> Any:
    out = np.zeros(len(p) - 1, dtype=np.int64)
    for i in range(len(p) - 1):
        a = ix[p[i] : p[i + 1]]
        out[i] = len(a) + 100 * a.shape[0] + 10000 * a.size
        for k in range(len(a)):
            out[i] += a[k] + a[-1] * 3
    return out


@program
def open_slices(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        total += x[p[i] :].sum() + 10 * x[: p[i]].sum() + x[p[i] :][:2].sum() + x[1:][: p[i]].sum()
    return total


@program
def slices_of_slices(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        a = x[p[i] : p[i + 1]]
        total += (a[1:] - a[:-1]).sum() + a[-2:].sum() + a[:3].sum()
    return total


@program
def means(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        a = x[p[i] : p[i + 1]]
        if len(a) > 1:
            total += a.mean() + a.max() * 2 + a.min() * 3 + np.std(a) + a.var(ddof=1) + a.prod()
    return total


@program
def unguarded_extremes(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        total += np.max(x[p[i] : p[i + 1]])
    return total


@program
def rows(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        for row in m[p[i] : p[i + 1]]:
            total += row[1] * row.sum()
        total += m[ix[i], p[i] : p[i + 1]].sum() + m[p[i] : p[i + 1], 3].sum() + m[ix[i]].sum()
        total += m[ix[i], 1:4].sum() + m[ix[i], p[i] :].sum()
    return total


@program
def single_elements(p: Any, ix: Any, x: Any, m: Any) -> Any:
    total = 0.0
    for i in range(len(p) - 1):
        a = x[p[i] : p[i + 1]]
        total += a[1] + a[-2]
        a[0] = 7.0
        a[ix[i]] += 1.0
    return total


@program
def second_elements(p: Any, ix: Any, x: Any, m: Any) -> Any:
    """The index is behind the slice in some calls, and in the array."""
    total = 0.0
    for i in range(len(p) - 1):
        total += x[p[i] : p[i + 1]][1]
    return total


@program
def scattered(p: Any, ix: Any, x: Any, m: Any) -> Any:
    out = np.zeros(10)
    for i in range(len(p) - 1):
        out[ix[p[i] : p[i + 1]]] = x[p[i] : p[i + 1]]
    return out


@program
def any_and_all(p: Any, ix: Any, x: Any, m: Any) -> Any:
    count = 0
    for i in range(len(p) - 1):
        a = x[p[i] : p[i + 1]]
        if (a > 1).any():
            count += 1
        if np.all(a < 1):
            count += 10
    return count


@program
def searched(p: Any, ix: Any, x: Any, m: Any) -> Any:
    """A loop that is left early."""
    found = -1
    for i in range(len(p) - 1):
        for j in ix[p[i] : p[i + 1]]:
            if j > 3:
                found = j
                break
    return found


@program
def outside_of_loops(p: Any, ix: Any, x: Any, m: Any) -> Any:
    n = 0
    for i in range(len(p)):
        if p[i] > 1:
            n += 1
    return x[:n].sum() + x[n:].sum() * 2 + x[-n:].sum() * 3 + x[n - 3 : n].sum()


@program
def narrow(p: Any, ix: Any, x: Any, m: Any) -> Any:
    y = x.astype(np.float32)
    k = ix.astype(np.int32)
    flags = x > 0
    total, count = np.float32(0), 0
    for i in range(len(p) - 1):
        total += y[p[i] : p[i + 1]].sum()
        count += k[p[i] : p[i + 1]].sum() + flags[p[i] : p[i + 1]].sum()
    return total, count


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_slices_are_those_of_numpy(function: Program) -> None:
    check(function, [(pointers, IX, X, M) for pointers in POINTERS])


def first_gathered(p: Any, ix: Any, x: Any, m: Any) -> Any:
    """All indices are checked, those of elements that nothing reads as well."""
    total = 0.0
    for i in range(len(p) - 1):
        total += x[ix[p[i] : p[i + 1]]][0]
    return total


@pytest.mark.parametrize("function", [row_sums, dots, scattered, npbench_spmv, first_gathered])
def test_indices_out_of_bounds_raise(function: Program) -> None:
    for k in range(10):
        for outside in (10, -11):
            indices = IX.copy()
            indices[k] = outside
            check(function, [(FULL, IX, X, M), (FULL, indices, X, M)])


def test_operands_of_other_lengths_raise_or_broadcast() -> None:
    def meets(p: Any, x: Any, y: Any) -> Any:
        total = 0.0
        for i in range(len(p) - 1):
            total += (x[p[i] : p[i + 1]] * y).sum()
        return total

    def assigns(p: Any, x: Any, y: Any) -> Any:
        for i in range(len(p) - 1):
            x[p[i] : p[i + 1]] = y[: p[1]]
        return x.sum()

    three, single = np.array([0, 3, 6, 9]), np.array([0, 1, 4, 9])
    for function in (meets, assigns):
        check(function, [(three, X, X[:3].copy()), (single, X, X[:3].copy()), (three, X, X[:4].copy())])


def test_changed_sources() -> None:
    """Elements computed from a slice keep their values; views do not."""

    def kept(p: Any, x: Any) -> Any:
        total = 0.0
        for i in range(len(p) - 1):
            a = x[p[i] : p[i + 1]] * 2
            b = x[p[i] : p[i + 1]]
            x[0] += 1.0
            total += a.sum() + b.sum()
        return total

    def shifted(p: Any, x: Any) -> Any:
        for i in range(len(p) - 1):
            x[p[i] + 1 : p[i + 1]] = x[p[i] : p[i + 1] - 1]
        return x.sum()

    import jitkernels as jk

    for function in (kept, shifted):
        x, own = X.copy(), X.copy()
        assert np.isclose(jk.jit(function)(P, x), function(P, own))
        assert np.array_equal(x, own)


def test_index_arrays_beside_a_slice() -> None:
    """NumPy makes a copy of these elements, or writes to them: neither is a slice of the array."""

    def read(p: Any, ix: Any, m: Any) -> Any:
        return m[ix, p[1] : p[2]], m[p[1] : p[3], ix], m[2, p[1] : p[3]]

    def written(p: Any, ix: Any, m: Any) -> Any:
        m = m.copy()
        m[p[1] : p[3], ix] = 7.0
        m[ix, p[0] : p[1]] = 8.0
        m[[0, 1], p[0] : p[1]] = 9.0
        return m

    for function in (read, written):
        compiled = jk.jit(function)
        for p in (np.array([1, 3, 5, 6]), np.array([0, 0, 2, 5])):
            found, expected = compiled(p, np.array([0, 2]), M), function(p, np.array([0, 2]), M)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_array_equal(one, other)
