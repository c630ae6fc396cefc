"""Sizes that are counted or that masks decide: new arrays, trimmed results, selected elements, indices."""

import operator
from typing import Any

import numpy as np
import pytest
from computed_calls import Program, check

import jitkernels as jk

X = np.random.default_rng(0).standard_normal(30)
CALLS = [X, np.abs(X), -np.abs(X), X[:1], X[:2], -X[:1], X[:0], np.array([1.0, np.nan, -np.inf, np.inf, 0.0]), X[::-2]]
PROGRAMS: list[Program] = []


def program(function: Program) -> Program:
    PROGRAMS.append(function)
    return function


@program
def trimmed(x: Any) -> Any:
    out = np.empty(len(x))
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            out[n] = x[i]
            n += 1
    return out[:n]


@program
def trimmed_pair(x: Any) -> Any:
    out, where = np.empty(len(x)), np.zeros(len(x), dtype=np.int32)
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            out[n], where[n] = x[i] * 2, i
            n += 1
    return out[:n], where[:n], n


@program
def trimmed_rows(x: Any) -> Any:
    out = np.zeros((len(x), 2))
    n = 0
    for i in range(len(x)):
        if x[i] > 0:
            out[n, 0] = i
            out[n, 1] = x[i]
            n += 1
    return out[:n]


@program
def counted(x: Any) -> Any:
    c = 0
    for i in range(len(x)):
        if x[i] > 0:
            c += 1
    out = np.empty(c)
    k = 0
    for i in range(len(x)):
        if x[i] > 0:
            out[k] = x[i]
            k += 1
    return out


@program
def counted_pairs(x: Any) -> Any:
    """A size that is no multiple of an extent."""
    c = 0
    for i in range(len(x)):
        for j in range(i):
            if x[i] > x[j]:
                c += 1
    pairs = np.zeros((c, 2), dtype=np.int64)
    k = 0
    for i in range(len(x)):
        for j in range(i):
            if x[i] > x[j]:
                pairs[k, 0] = i
                pairs[k, 1] = j
                k += 1
    return pairs


@program
def filled(x: Any) -> Any:
    c = 0
    for v in x:
        if v > 0:
            c += 2
    a = np.ones(c)
    b = np.full(c, 3, dtype=np.int32)
    a *= 2
    a += b
    return a, b, len(a), a.sum(), a.shape[0]


@program
def too_short(x: Any) -> Any:
    """Writes behind the end raise."""
    c = 0
    for v in x:
        if v > 0.5:
            c += 1
    out = np.zeros(c)
    for i in range(len(x)):
        if x[i] > 0:
            out[i] = 1.0
    return out


@program
def negative_size(x: Any) -> Any:
    c = 3
    for v in x:
        if not v > 0:
            c -= 1
    return np.zeros(c)


@program
def masked(x: Any) -> Any:
    b = x[x > 0]
    out = np.zeros(b.shape[0])
    for i in range(b.shape[0]):
        out[i] = b[i] * 2
    return out


@program
def masked_loop(x: Any) -> Any:
    b = x[x > 0]
    total = 0.0
    for v in b:
        total += v
    for i in range(len(b)):
        total += b[i] * i + b[-1]
    return total, len(b)


@program
def masked_functions(x: Any) -> Any:
    b = x[x > 0]
    if len(b) > 0:
        return b.max() + b.min() + b.mean() + b.sum() + np.dot(b, b) + b.std()
    return 0.0


@program
def masked_result(x: Any) -> Any:
    y = x * 2 + 1
    return y[y > 0], y


@program
def masked_then_computed(x: Any) -> Any:
    b = x[~np.isnan(x)]
    c = b * 2.0 - 1
    c[c > 0] = 0.5
    b[0] = 7.0
    b += 1
    return b, c, b.sum()


@program
def masked_twice(x: Any) -> Any:
    """Selected elements of selected elements."""
    b = x[x > -0.5]
    total = 0.0
    for i in range(len(b)):
        if b[i] < 0.5:
            total += b[i]
    return total, b[: len(b) // 2]


@program
def written(x: Any) -> Any:
    """A copy: writes to it do not change the source, nor the other way round."""
    b = x[x > 0]
    for i in range(len(b)):
        b[i] += 1
    x[0] = 100.0
    return b, b.sum()


@program
def where_alone(x: Any) -> Any:
    return np.where(x > 0)[0]


@program
def indices(x: Any) -> Any:
    found = np.flatnonzero(x > 0)
    (again,) = np.nonzero(x)
    total: Any = 0.0
    for k in found:
        total += x[k]
    for i in range(len(found) - 1):
        total += found[i + 1] - found[i]
    return total, found, again, x[found], x[found].sum()


@program
def written_at_indices(x: Any) -> Any:
    found = np.where(x < 0)[0]
    x[found] = 0.0
    y = np.zeros_like(x)
    y[found] += 2
    return x, y


@program
def joined(x: Any) -> Any:
    n = 0
    for v in x:
        if v > 0:
            n += 1
    y = np.concatenate((x[x > 0], x[:n] * 2, x, np.arange(n)))
    return y, np.hstack((x[x < 0], x[x > 1])).sum()


@program
def views_of_results(x: Any) -> Any:
    b = x[x > 0]
    return b, b[1:], b


@program
def views_before_results(x: Any) -> Any:
    b = x[x > 0]
    return b[1:], b


@program
def slice_of_argument(x: Any) -> Any:
    n = 0
    for v in x:
        if v > 0:
            n += 1
    x[:n] = 1.0
    return x[:n]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda function: function.__name__)
def test_sizes_are_those_of_numpy(function: Program) -> None:
    check(function, [(x,) for x in CALLS])


def test_many_pairs() -> None:
    """More elements than there is room for at first; the next call has room."""
    compiled = check(counted_pairs, [(X,), (np.arange(200.0),), (np.arange(300.0)[::-1].copy(),)])
    pairs = compiled(np.arange(250.0))
    assert pairs.shape == (250 * 249 // 2, 2)


def test_results_own_their_memory_as_numpys_do() -> None:
    selected = jk.jit(masked_result)(X)[0]
    assert selected.flags.owndata
    assert selected.base is None
    part = jk.jit(slice_of_argument)(x := X.copy())
    assert part.base is x
    first, second, third = jk.jit(views_of_results)(X)
    assert first is third
    assert np.shares_memory(first, second)
    second[0] = 99.0
    assert first[1] == 99.0
    part, whole = jk.jit(views_before_results)(X)
    assert np.shares_memory(part, whole)
    assert np.array_equal(part, whole[1:])


def test_columns_under_a_mask_of_rows() -> None:
    def of_columns(m: Any) -> Any:
        b = m[m[:, 0] > 0, 1]
        total = m[m[:, 1] > 0, 1:3].sum()
        for i in range(len(b)):
            total += b[i] * i
        m[m[:, 0] < 0, 2] = 0.0
        m[m[:, 0] > 1, 1:] *= 2
        return total, b

    m = np.random.default_rng(3).standard_normal((7, 5))
    check(of_columns, [(m,), (-np.abs(m),), (m[:0],), (np.asfortranarray(m),)])


def test_rows_of_a_matrix_that_a_mask_shortens() -> None:
    def shortened(m: Any) -> Any:
        out = np.zeros(len(m))
        for i in range(len(m)):
            row = m[i][m[i] > 0]
            for k in range(len(row)):
                out[i] += row[k] * (k + 1)
        return out

    m = np.random.default_rng(3).standard_normal((7, 5))
    check(shortened, [(m,), (-np.abs(m),), (m[:0],), (m[:, :1].copy(),)])


def test_long_sums_of_float32() -> None:
    """One accumulator of float32 would lose a fiftieth of them."""

    def sums(x: Any) -> Any:
        y = x[x > 0]
        n = len(y)
        return y.sum(), y.mean(), n

    x = np.full(1 << 21, 0.1, np.float32)
    compiled = jk.jit(sums, strict=True)
    for found, expected in zip(compiled(x), sums(x), strict=True):
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_python_numbers_do_not_widen_a_selection() -> None:
    def selected(x: Any, k: Any) -> Any:
        y = x[x > 0]
        return np.where(y > 1, y, k)

    for dtype in ("float32", "float64", "int32"):
        x = np.arange(-2, 5).astype(dtype)
        check(selected, [(x, 2.0), (x, 3), (x, np.float64(0.5))])


def test_an_empty_sum_is_an_int() -> None:
    def summed(x: Any) -> Any:
        return sum(x[x > 0])

    check(summed, [(X,), (-np.abs(X),), (X[:0],)])


BINARY = {
    name: getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor",
        "lt", "le", "gt", "ge", "eq", "ne",
    )
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_operators_of_selected_elements(name: str) -> None:
    """All operators of Python, with a number on either side."""
    operate = BINARY[name]

    def function(x: Any) -> Any:
        chosen = x[x > 3]
        return operate(chosen, 2), operate(2, chosen), operate(chosen, chosen)

    compiled = jk.jit(function, strict=True)
    for size in (6, 9):
        x = np.arange(size)
        for got, expected in zip(compiled(x), function(x), strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def runs(groups: Any, dtype: Any) -> Any:
    """Where runs of equal numbers begin, and how long they are, in lists that become arrays."""
    starts: list[Any] = []
    counts: list[Any] = []
    if len(groups) == 0:
        return np.array(starts, dtype=dtype), np.array(counts, dtype=dtype)
    starts.append(0)
    last = groups[0]
    for i in range(1, len(groups)):
        if groups[i] != last:
            counts.append(np.intp(i - starts[-1]))
            starts.append(np.intp(i))
            last = groups[i]
    counts.append(np.intp(len(groups) - starts[-1]))
    return np.array(starts, dtype=dtype), np.asarray(counts, dtype=dtype)


def array_of_a_list_that_grows_later(x: Any) -> Any:
    chosen = []
    for i in range(len(x)):
        if x[i] > 0.5:
            chosen.append(x[i])  # noqa: PERF401  # a list that grows is what is tested
    early = np.array(chosen, dtype=np.float32)
    chosen.append(7.0)
    return early, np.array(chosen)


@pytest.mark.parametrize("dtype", [np.intp, np.int32, np.float64])
def test_arrays_of_grown_lists(dtype: Any) -> None:
    compiled = jk.jit(lambda groups: runs(groups, dtype), strict=True)
    for lengths in ([3, 1, 4, 2], [5], [1, 1, 1]):
        groups = np.repeat(np.arange(len(lengths)), lengths)
        for got, expected in zip(compiled(groups), runs(groups, dtype), strict=True):
            np.testing.assert_array_equal(got, expected)
            assert got.dtype == expected.dtype
    x = np.random.default_rng(0).random(20)
    later = jk.jit(array_of_a_list_that_grows_later, strict=True)
    for got, expected in zip(later(x), array_of_a_list_that_grows_later(x), strict=True):
        np.testing.assert_array_equal(got, expected)
