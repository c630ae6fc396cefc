"""`numpy.unique`, `numpy.searchsorted`, and the extreme elements of arrays of computed size."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

GENERATOR = np.random.default_rng(0)


def distinct(x: Any) -> Any:
    return np.unique(x)


def counted(x: Any) -> Any:
    return np.unique(x, return_counts=True)


def indexed(x: Any) -> Any:
    return np.unique(x, return_index=True), np.unique(x, return_inverse=True)


def with_everything(x: Any) -> Any:
    return np.unique(x, True, True, True)


def with_all_nan(x: Any) -> Any:
    return np.unique(x, equal_nan=False)


def entropy(x: Any) -> Any:
    values, counts = np.unique(x, return_counts=True)
    total = 0.0
    for share in counts / x.size:
        total -= share * np.log(share)
    return round(float(total), 9), len(values), values[np.argmax(counts)], values[counts.argmin()]


def most_frequent(x: Any) -> Any:
    best = 0
    for value in np.unique(x):
        count = np.sum(x == value)
        if count > best:
            best = int(count)
    return best


def sizes(x: Any) -> Any:
    return np.unique(x).size, len(np.unique(x))


UNIQUE = [distinct, counted, indexed, with_everything, with_all_nan, entropy, most_frequent, sizes]
ARRAYS: dict[str, Any] = {
    "ints": GENERATOR.integers(0, 9, 100), "int32": GENERATOR.integers(-5, 5, 30).astype(np.int32),
    "floats": GENERATOR.random(100).round(1), "float32": GENERATOR.random(50).round(1).astype(np.float32),
    "nan": np.array([np.nan, 1, np.nan, 3, 1, np.inf, -np.inf]), "only nan": np.full(3, np.nan), "one": np.array([5.0]),
    "matrix": GENERATOR.integers(0, 5, (9, 4)), "bools": GENERATOR.integers(0, 2, 50).astype(bool),
    "strided": GENERATOR.integers(0, 9, 100)[::3], "large": GENERATOR.integers(0, 2000, 10_000),
    "uint64": np.array([2**64 - 1, 0, 2**63, 0, 2**64 - 1], np.uint64), "equal": np.zeros(20),
}  # fmt: skip


def same(got: Any, expected: Any) -> bool:
    """Whether two results have the same types and values, NaN included."""
    if isinstance(expected, tuple):
        return len(got) == len(expected) and all(map(same, got, expected))
    if type(got) is not type(expected):
        return False
    got, expected = np.asarray(got), np.asarray(expected)
    is_float = expected.dtype.kind == "f"
    return got.dtype == expected.dtype and np.array_equal(got, expected, equal_nan=is_float)


@pytest.mark.parametrize("function", UNIQUE)
def test_unique(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for name, x in ARRAYS.items():
        for array in (x, x[:0]) if function not in (entropy,) else (x,):
            assert same(compiled(array), function(array)), (name, array.shape)


def unsorted(x: Any) -> Any:
    return np.unique(x, sorted=False)


def values(x: Any) -> Any:
    return np.unique_values(x)


def unsorted_with_counts(x: Any) -> Any:
    return np.unique(x, return_counts=True, sorted=False), np.unique_counts(x)


@pytest.mark.parametrize("function", [unsorted, values, unsorted_with_counts])
def test_distinct_elements_in_the_order_of_numpy(function: Callable[..., Any]) -> None:
    """That of a hash table, which other functions than those of NumPy cannot know."""
    compiled = jk.jit(function)
    for name, x in ARRAYS.items():
        if x.ndim == 1:
            assert same(tuple(compiled(x)), tuple(function(x))), name


@pytest.mark.parametrize("counts", [False, True])
def test_unique_rows_in_a_loop(counts: bool) -> None:
    def of_rows(m: Any) -> Any:
        result = np.zeros((m.shape[0], 2))
        for i in range(m.shape[0]):
            if counts:
                values, numbers = np.unique(m[i], return_counts=True)
                result[i, 1] = np.max(numbers)
            else:
                values = np.unique(m[i])
            result[i, 0] = len(values) + values[0]
        return result

    for m in (GENERATOR.integers(0, 5, (20, 30)), GENERATOR.random((12, 40)).round(1)):
        assert same(jk.jit(of_rows, strict=True)(m), of_rows(m))


def test_arrays_returned_by_unique_are_new() -> None:
    x = np.array([3, 1, 3])
    values, counts = jk.jit(counted, strict=True)(x)
    assert values.flags.owndata
    assert counts.flags.owndata
    values[:] = 9
    assert x.tolist() == [3, 1, 3]


def one_by_one(table: Any, x: Any) -> Any:
    result = np.zeros((2, len(x)), np.int64)
    for i in range(len(x)):
        result[0, i] = np.searchsorted(table, x[i])
        result[1, i] = table.searchsorted(x[i], side="right")
    return result


def of_constants(table: Any, x: Any) -> Any:
    return np.searchsorted(table, 3), np.searchsorted(table, 0.25, "right"), np.searchsorted(table, x)


def of_one_number(table: Any, x: Any) -> Any:
    return np.searchsorted(table, x[0]), np.searchsorted(table, x[-1], side="right")


TABLES: list[tuple[Any, Any]] = [
    (np.sort(GENERATOR.random(50)), GENERATOR.random(30)),
    (np.sort(GENERATOR.integers(0, 9, 40)), GENERATOR.integers(-2, 12, 30)),
    (np.sort(GENERATOR.integers(0, 9, 40)), GENERATOR.random(30) * 9),
    (np.sort(GENERATOR.random(30).astype(np.float32)), GENERATOR.random(9)),
    (np.sort(GENERATOR.integers(0, 9, 40)).astype(np.uint8), GENERATOR.integers(-2, 12, 30)),
    (np.zeros(0), GENERATOR.random(3)),
    (np.array([1.0]), np.array([1.0, np.nan, 0, 2])),
    (np.array([1.0, 2, np.inf, np.nan, np.nan]), np.array([1.0, np.nan, 0, 2, np.inf, -np.inf])),
    (np.sort(GENERATOR.random(100))[::3], GENERATOR.random(9)),
]


@pytest.mark.parametrize("function", [one_by_one, of_constants, of_one_number])
def test_searchsorted(function: Callable[..., Any]) -> None:
    compiled = jk.jit(function, strict=True)
    for table, x in TABLES:
        assert same(compiled(table, x), function(table, x)), (table, x)


def extremes(x: Any) -> Any:
    chosen = x[x > 0.2]
    return np.argmax(chosen), chosen.argmin(), chosen[np.argmax(chosen)]


@pytest.mark.parametrize("x", [ARRAYS["floats"], ARRAYS["nan"], ARRAYS["ints"], np.array([0.3, np.nan, 5, np.nan])])
def test_extreme_elements_of_computed_sizes(x: Any) -> None:
    assert same(jk.jit(extremes, strict=True)(x), extremes(x))


def test_no_extreme_element() -> None:
    with pytest.raises(ValueError, match="argmax of an empty sequence"):
        jk.jit(extremes)(np.zeros(4))
