"""Compiled functions that write arguments, views and outputs: overlap, read-only arrays, duplicates."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import agree, array, reasons, same

import jitkernels as jk

BACKENDS = ("native", "interpreter")


def shifted(a: Any) -> None:
    a[1:] += a[:-1]


def reversed_in_place(a: Any) -> None:
    a[:] = a[::-1]


def rows_as_columns(a: Any) -> Any:
    b = a.T
    b[0, 1] = 5
    b += 1
    return b


def view_of_what_changes(a: Any) -> Any:
    b = a[1:]
    a[0] = 9
    b[0] = 8
    return a.sum(), b


def swapped(a: Any) -> None:
    kept = a[0].copy()
    a[0] = a[1]
    a[1] = kept


def scanned(a: Any) -> None:
    a[...] = np.cumsum(a, 0)
    a.sort(0)


def outputs(a: Any) -> Any:
    np.multiply(a, 2, out=a[::-1])
    np.add(a, 1, out=a, where=a > 1)
    o = np.zeros((3, 4))
    np.exp(a, out=o)
    o -= 1
    p = np.empty(3)
    a.sum(axis=1, out=p)
    return o, p


def masks(a: Any) -> None:
    a[a > 1] = np.nan
    a[np.isnan(a)] = 0
    a[a == 0] -= 2
    a[0][a[0] < 1] *= 3
    a[a > 100] = a[a > 100] + 1


def by_arrays(a: Any) -> None:
    a[[0, 1, 0]] += 1
    a[np.array([2, 0])] = a[[0, 1]]
    a[[0, 1], [1, 0]] *= 2
    a[1:, [0, 2]] = 1


def reshaped(a: Any) -> Any:
    b = a.reshape(2, 6)
    c = b[0]
    c[...] = 0
    a.ravel()[1] = 2
    a.flatten()[0] = 100
    a[:, None, :][0, 0, 0] = 7
    return a, b, c


def copied_when_transposed(a: Any) -> Any:
    y = a.T + 1
    z = y.reshape(-1)
    z[0] = 5
    return y


def same_array(a: Any) -> Any:
    b = np.asarray(a)
    b[0] = 1
    return b, b is a


def stencil(a: Any) -> Any:
    y = np.zeros_like(a)
    y[1:-1] = a[:-2] - 2 * a[1:-1] + a[2:]
    return y


def filled(a: Any) -> None:
    np.copyto(a, 2 * a)
    a[1].fill(3)
    np.fill_diagonal(a, 7)


def scalars(a: Any) -> Any:
    s = a.sum()
    s += 1
    t = a[0, 0]
    a[0, 0] = 100
    return s, t, a[0]


def views(a: Any) -> Any:
    y = a + 1
    return np.broadcast_to(a[0], (3, 4)), a, a[1:], a.T, a[None], a.reshape(-1), y, y[0], y.T, y, np.exp(a)[0]


def numbers(a: Any) -> None:
    a[1] = 5.5
    a[0, 0] = np.float32(2)
    a[:, 1] = [1, 2, 3]
    a[2, :] = (1, 2, 3, 4)
    a[-1, 1:3] = np.arange(2)


def overlapping(a: Any) -> None:
    a[0:2] = a[1:3]
    a[:, 1:] = a[:, :-1]
    a[-1] = a[0]
    a[1:2, ::-1] = a[0]
    a[..., -1] = 0
    a[None] = a * 2


def loops(a: Any) -> Any:
    for i in range(a.shape[0]):
        a[i] *= i
    for row in a:
        row += 1
    return a


def chained(a: Any) -> Any:
    a /= 2
    a **= 2
    a -= a.mean()
    a //= 1
    return a


def before_it_changed(a: Any) -> Any:
    kept = a.copy()
    a += 1
    return kept, a * 1


WRITING: tuple[Callable[[Any], Any], ...] = (
    shifted, reversed_in_place, rows_as_columns, view_of_what_changes, swapped, scanned, outputs, masks, by_arrays,
    reshaped, same_array, stencil, filled, scalars, views, numbers, overlapping, loops, chained, before_it_changed,
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("function", WRITING)
def test_writes(function: Any, backend: str) -> None:
    agree(function, lambda: array(3, 4), backend=backend)


@pytest.mark.parametrize("function", [shifted, reversed_in_place, by_arrays, overlapping, loops, filled])
def test_writes_to_strided_arrays(function: Any) -> None:
    agree(function, lambda: array(6, 8)[::2, ::-2])
    agree(function, lambda: array(4, 3).T)


@pytest.mark.parametrize("function", [shifted, reversed_in_place, loops, overlapping])
def test_writes_to_ints(function: Any) -> None:
    agree(function, lambda: array(3, 4, dtype="i4"))


def test_a_reshape_that_may_be_a_copy() -> None:
    agree(copied_when_transposed, lambda: array(3, 4), plain=True)


@pytest.mark.parametrize("function", [reshaped, views])
def test_a_reshape_that_is_a_copy(function: Callable[..., Any]) -> None:
    agree(function, lambda: array(4, 3).T)


def test_invalid_writes_raise_as_in_numpy() -> None:
    def diagonal(a: Any) -> None:
        np.diagonal(a)[0] = 1

    def broadcast(a: Any) -> None:
        np.broadcast_to(a[0], (3, 4))[0] = 1

    def cast(a: Any) -> None:
        a += 0.5

    def not_broadcastable(a: Any) -> None:
        a[0] = np.ones(7)

    def outside(a: Any) -> None:
        a[5] = 1

    for function in (diagonal, broadcast, not_broadcastable, outside):
        agree(function, lambda: array(3, 4))
    agree(cast, lambda: array(3, 4, dtype="i4"))


def read_only() -> Any:
    a = array(3, 4)
    a.flags.writeable = False
    return a


def test_read_only_arguments() -> None:
    agree(shifted, read_only)
    agree(lambda a: (a + 1, a[1:], a.T), read_only)
    compiled = jk.jit(shifted)
    compiled(array(3, 4))
    with pytest.raises(ValueError, match="read-only"):
        compiled(read_only())


def test_invalid_outs_are_rejected_before_writing() -> None:
    """Also where an earlier one is valid."""
    fixed = np.zeros((3, 4))
    fixed.flags.writeable = False
    wrong = [np.zeros((3, 4), int), np.zeros((4, 3)), np.zeros((3, 4), bool), fixed]
    for function in (lambda a: (a + 1, a * 2), lambda a: [np.sort(a), a * 2]):
        for compiled in (jk.jit(function), jk.jit(function, opt_level=0)):
            compiled(array(3, 4))
            for one in wrong:
                first = np.full((3, 4), 7.0)
                with pytest.raises((jk.ArgumentError, jk.ArgumentTypeError), match="out: expected an array"):
                    compiled(array(3, 4), out=(first, one))
                assert np.all(first == 7), one


def added(a: Any, b: Any) -> Any:
    a += b
    return a


def test_arguments_that_overlap() -> None:
    compiled, found, expected = jk.jit(added), np.arange(10.0), np.arange(10.0)
    same(compiled(found[1:], found[:-1]), added(expected[1:], expected[:-1]))
    same(found, expected)
    same(compiled(found, found[::-1]), added(expected, expected[::-1]))
    same(found, expected)
    assert compiled(found, found) is found
    added(expected, expected)
    same(found, expected)
    same(compiled(found[:5], found[5:]), added(expected[:5], expected[5:]))
    same(found, expected)


def test_self_overlapping_arguments() -> None:
    def windows() -> Any:
        return np.lib.stride_tricks.as_strided(np.arange(8.0), (3, 4), (16, 8))

    agree(added, windows, lambda: array(3, 4))


def test_results_are_written_to_out() -> None:
    compiled: Any = jk.jit(lambda x: (x * 2, x.sum(axis=0)))
    x, doubled, total = array(3, 4), np.empty((3, 4)), np.empty(4, "f4")
    assert compiled(x, out=(doubled, total))[0] is doubled
    same(doubled, x * 2)
    np.testing.assert_allclose(total, x.sum(axis=0), rtol=1e-6)
    single: Any = jk.jit(lambda x: x[::-1] + 1)
    expected = x[::-1] + 1
    for _ in range(3):
        assert single(x, out=doubled) is doubled
        same(doubled, expected)
    assert single(x, out=x) is x
    same(x, expected)
    with pytest.raises(jk.ArgumentError, match="out: expected an array of shape"):
        single(x, out=np.empty(3))
    with pytest.raises(jk.ArgumentTypeError, match="out: expected an array"):
        single(x, out=[1.0])  # a list cannot take results


def test_lists_of_the_caller_are_changed() -> None:
    def changing(values: list[Any], names: dict[str, Any]) -> Any:
        values.append(values[0] + 1)
        names["x"] = names["x"] * 2
        return names["x"]

    compiled = agree(changing, lambda: [array(3)], lambda: {"x": array(3)}, plain=True)
    assert any("changes a list" in reason for reason in reasons(compiled))


def column(x: Any) -> None:
    x[..., 0] = x[..., -1]


def upper_half(x: Any) -> None:
    x[:5] = x[5:10] * 2 + 1


def another_row(x: Any) -> None:
    x[0] = x[1]
    x[3] = x[2][::-1] - x[1]


def farther(x: Any) -> None:
    x[:3, 1:] = x[5:8, :0:-1]


def neighbours(x: Any) -> None:
    x[1:6] = x[:5]


def from_the_end(x: Any) -> None:
    x[0:4] = x[-5:-1]


@pytest.mark.parametrize("function", [column, upper_half, another_row, farther, neighbours, from_the_end])
def test_disjoint_regions_are_not_copied(function: Any) -> None:
    """Elements are copied before a write only where the regions may overlap."""
    compiled: Any = jk.jit(function)
    for shape in ((10, 6), (11, 7), (200, 100), (9, 5), (12, 2)):
        if function in (upper_half, farther) and shape[0] < 10:
            continue
        mine = array(*shape)
        right = mine.copy()
        for _ in range(3):
            compiled(mine)
            function(right)
            np.testing.assert_array_equal(mine, right)
    if function in (column, upper_half, farther):
        assert compiled.explain(array(200, 100)).kernels == 1


def divided_in_place(a: Any) -> None:
    a[a > 2] /= 2


def changed_where_it_is_named_twice(a: Any) -> Any:
    chosen = a[a > 2]
    same = chosen
    chosen += 1
    a[a > 2] = same
    return a.sum()


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("function", [divided_in_place, changed_where_it_is_named_twice])
def test_masked_elements_change_in_place(function: Any, dtype: str) -> None:
    whole = dtype[0] != "f" and function is divided_in_place  # which NumPy refuses
    agree(function, lambda: array(40, dtype=dtype), plain=whole)
