"""Gathers: fused with what is computed of the elements, and refused as NumPy does."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.dispatch import specialization
from jitkernels.tools.testing.guard_pages import Guarded, Side

DTYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
NUMBERS = ("int64", "int32", "int16", "int8", "uint8", "uint64")
SIDES: tuple[Side, ...] = ("start", "end")
chosen = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _compile_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialization, "SECONDS_OF_PYTHON", 0.0)


def array(*shape: int, dtype: str = "float64") -> Any:
    return (chosen.integers(-9, 10, shape) / (4 if dtype[0] == "f" else 1)).astype(dtype)


def numbers(extent: int, *shape: int, dtype: str = "int64") -> Any:
    least = 0 if dtype[0] == "u" else -extent
    return chosen.integers(least, extent, shape).astype(dtype)


def agrees(function: Callable[..., Any], *arguments: Any, kernels: int | None = None) -> None:
    """Fail unless a function gives the same compiled, in so many kernels and no call of NumPy."""
    compiled = jk.jit(function)
    expected = function(*arguments)
    for _ in range(3):
        np.testing.assert_array_equal(compiled(*arguments), expected)
    explained = compiled.explain(*arguments)
    assert not any(group.kind == "NumPy" and group.text != "reshape" for group in explained.groups), str(explained)
    if kernels is not None:
        assert explained.kernels == kernels, str(explained)


def scaled(a: Any, i: Any, b: Any) -> Any:
    return a[i] * b


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 2, 7, 300])
def test_gathers_fuse_with_their_consumers(dtype: str, count: int) -> None:
    agrees(scaled, array(50, dtype=dtype), numbers(50, count), array(count, dtype=dtype), kernels=2)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_indices_of_all_dtypes(dtype: str) -> None:
    agrees(scaled, array(50), numbers(50, 100, dtype=dtype), array(100))


SHAPES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows": (lambda a, i: a[i] + 1, (array(9, 30), numbers(9, 40))),
    "columns": (lambda a, i: a[:, i] + 1, (array(9, 30), numbers(30, 40))),
    "middle": (lambda a, i: a[:, i] + 1, (array(5, 9, 30), numbers(9, 40))),
    "pairs": (lambda a, i, j: a[i, j] + 1, (array(9, 30), numbers(9, 40), numbers(30, 40))),
    "outer": (lambda a, i, j: a[i[:, None], j] + 1, (array(9, 30), numbers(9, 4), numbers(30, 50))),
    "apart": (lambda a, i, j: a[i, :, j] + 1, (array(9, 4, 30), numbers(9, 50), numbers(30, 50))),
    "matrix of numbers": (lambda a, i: a[i] + 1, (array(40), numbers(40, 6, 7))),
    "transposed": (lambda a, i: a.T[i] + 1, (array(9, 30), numbers(30, 40))),
    "every second": (lambda a, i: a[1::2][i] + 1, (array(60), numbers(29, 40))),
    "reversed": (lambda a, i: a[::-1][i[::-2]] + 1, (array(60), numbers(60, 41))),
    "a number and numbers": (lambda a, i: a[2, i] + 1, (array(4, 30), numbers(30, 20))),
    "one number": (lambda a, i: a[i] + 1, (array(30), np.int64(-3))),
    "number without dimensions": (lambda a, i: a[i] + 1, (array(30, 4), np.array(7))),
    "a list": (lambda a: a[[3, -1, 0]] + 1, (array(9, 30),)),
    "computed numbers": (lambda a, x: a[(x * 3).astype(int) % 20] + 1, (array(20), array(50))),
    "numbers of numbers": (lambda a, i, j: a[i[j]] + 1, (array(20), numbers(20, 30), numbers(30, 50))),
    "sum": (lambda a, i: a[i].sum(), (array(20), numbers(20, 70))),
    "sums of rows": (lambda a, i: a[i].sum(1), (array(20, 8), numbers(20, 70))),
    "sums of columns": (lambda a, i: a[i].sum(0), (array(20, 8), numbers(20, 70))),
    "take": (lambda a, i: np.take(a, i, axis=1) + 1, (array(5, 20), numbers(20, 30))),
    "take of all": (lambda a, i: np.take(a, i) + 1, (array(5, 20), numbers(100, 30))),
    "along": (lambda a, i: np.take_along_axis(a, i, 1) + 1, (array(5, 20), numbers(20, 5, 8))),
    "sorted": (lambda a, i: np.take_along_axis(a, i, 0) * a[:3], (array(5, 20), numbers(5, 3, 20))),
    "part of it": (lambda a, i: a[i][2:-1:2] + 1, (array(40), numbers(40, 50))),
    "of what is computed": (lambda a, i: (a * 2 + 1)[i] - 1, (array(40), numbers(40, 50))),
    "twice": (lambda a, i: a[i] - a[i - 1], (array(40), numbers(39, 50))),
    "into a part": (lambda a, i: np.concatenate([a[i], a]), (array(40), numbers(40, 50))),
    "no numbers": (lambda a, i: a[i] + 1, (array(40, 3), numbers(40, 0))),
    "one element": (lambda a, i: a[i] + 1, (array(1), np.array([0, -1, 0]))),
    "empty rows": (lambda a, i: a[i] + 1, (array(7, 0), numbers(7, 5))),
    "chosen": (lambda a, i: np.where(a > 0, a[i], -1), (array(40), numbers(40, 40))),
    "of what is constant": (lambda a, i: (a.astype(int) - a.astype(int))[i].sum(), (array(40), numbers(40, 12))),
    "of an int": (lambda n, i: np.arange(n)[i] * 2, (30, numbers(30, 12))),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_forms_of_indexing(name: str) -> None:
    function, arguments = SHAPES[name]
    agrees(function, *arguments)
    in_column_order = [
        np.asfortranarray(one) if isinstance(one, np.ndarray) and one.ndim > 1 else one for one in arguments
    ]
    agrees(function, *in_column_order)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_lower_levels(level: int) -> None:
    for name, (function, arguments) in SHAPES.items():
        found = jk.jit(function, opt_level=level)(*arguments)
        np.testing.assert_array_equal(found, function(*arguments), err_msg=name)


def refused(function: Callable[..., Any], *arguments: Any) -> None:
    """Fail unless a compiled function raises what NumPy raises, the first time and later."""
    compiled = jk.jit(function)
    before = [np.copy(one) for one in arguments]
    with pytest.raises(IndexError) as expected:
        function(*arguments)
    given = [np.copy(one) for one in before]
    for _ in range(3):
        with pytest.raises(IndexError) as raised:
            compiled(*given)
        assert str(raised.value) == str(expected.value)
        for one, other, plain in zip(given, before, arguments, strict=True):
            np.testing.assert_array_equal(one, plain if one.flags.writeable else other)


@pytest.mark.parametrize("wrong", [30, -31, 10**15, -(10**15)])
@pytest.mark.parametrize("position", [0, 17, 699])
def test_indices_out_of_bounds_raise_as_in_numpy(wrong: int, position: int) -> None:
    i = numbers(30, 700)
    i[position] = wrong
    refused(scaled, array(30), i, array(700))
    refused(lambda a, i: a[:, i].sum(0), array(3, 30), i)
    refused(lambda a, i, j: a[j, i], array(30, 30), i, numbers(30, 700))


def test_index_errors_after_successful_calls() -> None:
    compiled = jk.jit(scaled)
    a, i, b = array(30), numbers(30, 5000), array(5000)
    out = np.zeros(5000)
    for _ in range(3):
        compiled(a, i, b, out=out)
    kept = out.copy()
    i[4999] = 30
    with pytest.raises(IndexError, match="index 30 is out of bounds for axis 0 with size 30"):
        compiled(a, i, b, out=out)
    np.testing.assert_array_equal(out, kept)
    i[4999] = -30
    np.testing.assert_array_equal(compiled(a, i, b, out=out), a[i] * b)


def test_empty_indices() -> None:
    refused(lambda a, i: a[i], array(0), np.array([0]))
    agrees(lambda a, i, j: a[i, j], array(4, 5), np.zeros((0,), int), np.array([9]))


def test_index_errors_leave_arrays_as_numpy_does() -> None:
    def changes(a: Any, i: Any) -> Any:
        b = a[i]
        a += 1
        return b

    def changes_first(a: Any, i: Any) -> Any:
        a += 1
        return a[i]

    def by_what_is_changed(a: Any, i: Any) -> Any:
        i += 1
        return a[i]

    for function in (changes, changes_first, by_what_is_changed):
        compiled = jk.jit(function)
        for size in (20, 20000):
            for _ in range(3):
                a, i = array(size), numbers(size - 1, 50)
                b, j = a.copy(), i.copy()
                np.testing.assert_array_equal(compiled(a, i), function(b, j))
                np.testing.assert_array_equal(a, b)
                np.testing.assert_array_equal(i, j)
            i[3] = j[3] = size
            with pytest.raises(IndexError):
                function(b, j)
            for _ in range(3):
                here, there = a.copy(), i.copy()
                with pytest.raises(IndexError):
                    compiled(here, there)
                np.testing.assert_array_equal(here, b)
                np.testing.assert_array_equal(there, j)


def test_gathers_from_written_arrays() -> None:
    def permuted(a: Any, i: Any) -> None:
        a[:] = a[i]

    def shifted(a: Any, i: Any) -> None:
        a[0] = a[i].sum()
        a[1:] = a[i][:-1]

    for function in (permuted, shifted):
        compiled = jk.jit(function)
        for size in (5, 1000, 30000):
            for _ in range(3):
                a, i = array(size), numbers(size, size)
                b = a.copy()
                compiled(a, i)
                function(b, i)
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_no_reads_out_of_bounds(dtype: str) -> None:
    compiled = [jk.jit(scaled), jk.jit(lambda a, i, b: a[:, None][i, 0] * b)]
    for n in (*range(1, 20), 33, 64, 65):
        for side in SIDES:
            a = Guarded(array(n, dtype=dtype), side)
            i = Guarded(numbers(n, n), side)
            i.array[0], i.array[-1] = -n, n - 1
            b = Guarded(array(n, dtype=dtype), side)
            for function in compiled:
                np.testing.assert_array_equal(function(a.array, i.array, b.array), a.array[i.array] * b.array)
            for guarded in (a, i, b):
                assert guarded.intact()


def test_gathered_rows_are_c_contiguous() -> None:
    found = jk.jit(lambda a, i: a[i] + 1)(array(9, 30), numbers(9, 40))
    assert found.flags.c_contiguous


def test_a_row_at_a_computed_index_is_a_view() -> None:
    def row(a: Any, i: Any) -> Any:
        return a[i % 5]

    a = array(9, 4)
    assert np.shares_memory(jk.jit(row)(a, np.int64(7)), a)
    assert not np.shares_memory(jk.jit(lambda a, i: a[i % 5] * 1)(a, np.int64(7)), a)
    np.testing.assert_array_equal(jk.jit(lambda a, i: a[i % 5] * 2)(a, np.int64(7)), a[2] * 2)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3)])
def test_indices_into_an_empty_array_are_rejected(shape: tuple[int, ...]) -> None:
    compiled = jk.jit(lambda x, i: x[..., i])
    assert compiled(np.zeros(shape), np.array([2, -3])).shape == (*shape[:-1], 2)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        compiled(np.zeros(shape), np.array([5]))


def test_indexing_with_an_ellipsis_returns_an_array() -> None:
    keys: list[Callable[[Any, Any], Any]] = [
        lambda x, i: x[..., i], lambda x, i: x[i, ...], lambda x, i: x[i]
    ]  # fmt: skip
    for key in keys:
        found, expected = (one(np.arange(4.0), np.array(2)) for one in (jk.jit(key), key))
        assert type(found) is type(expected)
        assert found == expected


def _unused(x: Any, i: Any) -> Any:
    x[i]
    return x + 1


def _folded(x: Any, i: Any) -> Any:
    return (x > 0)[i] | True


def _shape_alone(x: Any, i: Any) -> Any:
    return np.ones_like(x[i])


def _overwritten(x: Any, i: Any) -> Any:
    y = x * 2
    y[i] = 1
    y[...] = 4
    return y


@pytest.mark.parametrize("function", [_unused, _folded, _shape_alone, _overwritten], ids=lambda one: one.__name__)
def test_unused_indices_are_checked(function: Callable[..., Any]) -> None:
    x, compiled = np.arange(6.0), jk.jit(function)
    for numbers in (np.array([0, 5]), np.array([-6, 1])):
        np.testing.assert_array_equal(compiled(x, numbers), function(x, numbers))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 6"):
        compiled(x, np.array([0, 9]))


def test_scatters_into_an_empty_array_are_rejected() -> None:
    for shape in ((0,), (0, 3), (3, 0)):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            jk.jit(_placed)(np.zeros(shape), np.array([5]))


def _placed(x: Any, i: Any) -> Any:
    y = x.copy()
    y[i] = 1
    return y


def test_unsigned_indices_out_of_bounds_raise_as_in_numpy() -> None:
    compiled = jk.jit(lambda x, i: x[i])
    for number in (np.uint64(2**64 - 1), np.array(2**64 - 1, np.uint64)):
        with pytest.raises((OverflowError, IndexError)) as expected:
            compiled.__wrapped__(np.arange(4.0), number)
        with pytest.raises(expected.type):
            compiled(np.arange(4.0), number)
    assert compiled(np.arange(4.0), np.uint64(3)) == 3
