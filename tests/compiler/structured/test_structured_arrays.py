"""Structured arrays and records in compiled functions, against the plain function: values, writes, dtypes, errors."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import jitkernels as jk
from jitkernels.errors import BundleError, DerivativeError

RECORD = np.dtype([("id", np.int64), ("x", np.float64), ("k", np.int32), ("f", np.float32)], align=True)


def records(count: int, dtype: np.dtype[Any] = RECORD) -> Any:
    rng = np.random.default_rng(count)
    result = np.zeros(count, dtype)
    for name in dtype.names or ():
        result[name] = rng.random(count) * 5
    return result


def total(r: Any) -> Any:
    result = 0.0
    for i in range(len(r)):
        result += r[i]["x"] * r["k"][i]
    return result


def of_fields(r: Any) -> Any:
    return r["x"] * 2 + r["k"]


def write(r: Any) -> None:
    for i in range(r.shape[0]):
        r["x"][i] = 2.5 * i
        r[i]["k"] = i + 1
        record = r[i]
        record["id"] = 7 * i


def loop_over(r: Any) -> Any:
    result, last = 0.0, -1
    for record in r:
        if record["k"] > 1:
            result += record["x"]
            last = record["id"]
    return result, last


def copy_records(r: Any) -> Any:
    result = np.zeros(len(r), dtype=RECORD)
    for i in range(len(r)):
        result[len(r) - 1 - i] = r[i]
    return result


def largest(r: Any) -> Any:
    best = r[0]
    for i in range(1, len(r)):
        if r[i]["x"] > best["x"]:
            best = r[i]
    return best["id"], best["x"]


def selected(r: Any) -> Any:
    return r[r["x"] > 2]


def part(r: Any) -> Any:
    middle = r[2:6]
    return middle["x"].sum(), middle["k"].max()


def last(r: Any) -> Any:
    return r[-1]["x"]


def copied(r: Any) -> Any:
    result = r.copy()
    result["x"][0] = 9
    return result


def numpy_copy(r: Any) -> Any:
    return np.copy(r[1:])


def field(r: Any) -> Any:
    return r["x"]


def shifted(r: Any) -> None:
    r[1:] = r[:-1]


def from_tuple(r: Any) -> None:
    r[0] = (1, 2.5, 3, 4.0)


def missing_field(r: Any) -> Any:
    return r["none"]


def fill(record: Any, number: int) -> None:
    record["id"] = number
    record["x"] = number / 2
    record["k"] = number + 1


def fill_all(r: Any) -> None:
    for i in range(len(r)):
        fill(r[i], i)


def unread(r: Any) -> Any:
    r[20]
    return 1


FUNCTIONS = [
    total, of_fields, write, loop_over, copy_records, largest, selected, part, last, copied, numpy_copy, field, shifted,
    from_tuple, missing_field, fill_all, unread,
]  # fmt: skip


def outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (IndexError, ValueError) as error:
        return error


def check(function: Any, compiled: Any, *arguments: Any) -> None:
    """Compare two calls of a compiled function, cold and warm, with those of the plain function on other memory."""
    for _ in range(2):
        ours, theirs = arguments, pickle.loads(pickle.dumps(arguments))  # other dtype objects, too
        expected, result = outcome(function, *theirs), outcome(compiled, *ours)
        if isinstance(expected, Exception):
            assert (type(result), str(result)) == (type(expected), str(expected))
        elif isinstance(expected, tuple):
            assert [type(one) for one in result] == [type(one) for one in expected]
            np.testing.assert_allclose(result, expected)
        else:
            assert type(result) is type(expected)
            assert expected is None or np.asarray(result).dtype == np.asarray(expected).dtype
            structured = isinstance(expected, np.ndarray | np.void) and expected.dtype.names
            (np.testing.assert_array_equal if structured else np.testing.assert_allclose)(
                0 if result is None else result, 0 if expected is None else expected
            )
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_arrays(function: Any) -> None:
    check(function, jk.jit(function, strict=True), records(9))


@pytest.mark.parametrize(
    "function", [total, of_fields, write, selected, fill_all, shifted], ids=lambda one: one.__name__
)
def test_other_memory(function: Any) -> None:
    """Reversed, with gaps, of other lengths, by the same compiled function."""
    compiled = jk.jit(function, strict=True)
    for array in (records(12), records(24)[::2], records(12)[::-1], records(30)[3:], records(1), records(0)):
        check(function, compiled, array)


def test_a_record() -> None:
    compiled = jk.jit(fill, strict=True)
    ours, theirs = records(4), records(4)
    for i in range(4):
        compiled(ours[i], i)
        fill(theirs[i], i)
    np.testing.assert_array_equal(ours, theirs)
    alone = pickle.loads(pickle.dumps(ours[1]))  # which owns its memory
    compiled(alone, 9)
    fill(ours[1], 9)
    assert alone == ours[1]
    frozen = records(4)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        jk.jit(fill)(frozen[1], 5)


def two(a: Any, b: Any) -> None:
    for i in range(len(a)):
        a[i]["x"] = b[i]["x"] + b[i]["k"]
        b[i]["k"] = i


def test_arguments_that_overlap() -> None:
    compiled = jk.jit(two)
    for is_same in (False, True):
        for _ in range(2):
            (ours, theirs) = ((array, array if is_same else records(9)) for array in (records(9), records(9)))
            compiled(*ours)
            two(*theirs)
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_array_equal(one, other)
    ours, theirs = records(9), records(9)
    compiled(ours[1:], ours[:-1])
    two(theirs[1:], theirs[:-1])
    np.testing.assert_array_equal(ours, theirs)
    compiled(ours["x"][:4].base[:4], ours[5:])
    two(theirs[:4], theirs[5:])
    np.testing.assert_array_equal(ours, theirs)


def test_records_that_overlap_themselves() -> None:
    def run(function: Any) -> Any:
        memory = np.zeros(200, np.int64)
        dtype = np.dtype([("a", np.int64), ("b", np.int64)])
        view = as_strided(memory[:2].view(dtype), (8,), (8,))
        function(view)
        return memory

    def function(r: Any) -> None:
        for i in range(len(r)):
            r[i]["a"] = i + 1
            r[i]["b"] = r[i]["a"] + 10

    compiled = jk.jit(function)
    compiled(np.zeros(8, np.dtype([("a", np.int64), ("b", np.int64)])))
    np.testing.assert_array_equal(run(compiled), run(function))


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("a", np.int8), ("x", np.float64)]),
        np.dtype([("x", np.float64), ("k", np.int64, (2,))]),
        np.dtype([("x", np.float64), ("inner", [("k", np.int64)])]),
        np.dtype([("x", ">f8"), ("k", np.int64)]),
        np.dtype({"names": ["x", "y"], "formats": ["f8", "f8"], "offsets": [0, 4]}),
    ],
    ids=["unaligned", "array", "nested", "swapped", "overlapping"],
)
def test_other_dtypes_are_left_to_numpy(dtype: np.dtype[Any]) -> None:
    def function(r: Any) -> Any:
        return r["x"] * 2

    array = np.zeros(5, dtype)
    array["x"] = np.arange(5)
    np.testing.assert_array_equal(jk.jit(function)(array), function(array))


def test_memory_that_is_not_aligned() -> None:
    """A dtype without alignment accepts records anywhere; compiled code reads aligned fields alone."""
    dtype = np.dtype([("x", np.float64), ("k", np.int64)])
    aligned = np.zeros(6, dtype)
    aligned["x"] = np.arange(6)
    shifted_by_four = np.zeros(6 * 16 + 4, np.uint8)[4:].view(dtype)
    shifted_by_four["x"] = np.arange(6)
    compiled = jk.jit(lambda r: r["x"] + r["k"])
    for array in (aligned, shifted_by_four, aligned, shifted_by_four):
        np.testing.assert_array_equal(compiled(array), np.arange(6.0))


def grown(x: Any, limit: float) -> Any:
    result = np.empty(x.shape[0], dtype=RECORD)
    count = 0
    for i in range(len(x)):
        if x[i] > limit:
            result[count]["id"] = i
            result[count]["x"] = x[i]
            result["k"][count] = count
            result["f"][count] = 0.25
            count += 1
    return result[:count]


def one_record(x: Any, limit: float) -> Any:
    result = np.zeros(3, dtype=RECORD)
    result[1]["x"] = limit + x[0]
    return result[1]


def computed_number(x: Any, limit: float) -> Any:
    result = np.zeros(int(x.sum() / limit) + 1, dtype=RECORD)
    result[0]["x"] = limit
    result["id"] += 3
    return result


@pytest.mark.parametrize("function", [grown, one_record, computed_number], ids=lambda one: one.__name__)
def test_new_arrays(function: Any) -> None:
    compiled = jk.jit(function, strict=True)
    for limit in (0.4, 0.01, 2.0):
        check(function, compiled, np.random.default_rng(1).random(30), limit)


def test_rows_of_records() -> None:
    def function(r: Any) -> Any:
        result = 0.0
        for i in range(r.shape[0]):
            for j in range(r.shape[1]):
                result += r[i, j]["x"]
                r[i, j]["k"] += 2
        return result

    check(function, jk.jit(function, strict=True), np.stack([records(4), records(4)]))


def test_other_functions_are_left_to_numpy() -> None:
    def ordered(r: Any) -> Any:
        return np.sort(r, order="x")

    def equal(r: Any) -> Any:
        return r == r[::-1]

    def several(r: Any) -> Any:
        return r[["x", "k"]]

    for function in (ordered, equal, several):
        array = records(7)
        np.testing.assert_array_equal(jk.jit(function)(array), function(array))


def test_a_returned_argument_is_the_argument() -> None:
    array = records(5)
    assert jk.jit(lambda r: r)(array) is array
    result = jk.jit(lambda r: r["x"])(array)
    assert np.shares_memory(result, array)


def test_what_takes_no_structured_arrays(tmp_path: Any) -> None:
    array = records(5)
    with pytest.raises(BundleError, match="structured arrays"):
        jk.jit(of_fields).export(tmp_path / "bundle", array)
    with pytest.raises(DerivativeError, match="a structured array of fields 'id', 'x'"):
        jk.grad(of_fields)(array)


def test_explanations_name_the_fields() -> None:
    assert "r['x']" in str(jk.jit(of_fields).explain(records(5)))


def local(x: Any) -> Any:
    result = np.zeros(len(x), dtype=RECORD)
    result["x"] = x
    return result


SHARING = {
    "twice": lambda x, r: (r, [r]),
    "a field": lambda x, r: (r, r["x"]),
    "a field twice": lambda x, r: (r["x"], r["k"], r["x"]),
    "a record": lambda x, r: (r[1], r),
    "a record twice": lambda x, r: (r[1], r[1]),
    "slices": lambda x, r: (r[1:], r[:-1]),
    "a slice of computed length": lambda x, r: (r[: int(x[0])], r["k"]),
    "a copy": lambda x, r: (r, r.copy()),
    "a selection": lambda x, r: (r, r[r["x"] > 1]),
    "a selection twice": lambda x, r: [r[r["x"] > 1]] * 2,
}


@pytest.mark.parametrize("results", SHARING.values(), ids=SHARING)
def test_results_that_share_memory(results: Any) -> None:
    """Parts of a result share memory where NumPy's do."""

    def function(x: Any) -> Any:
        return results(x, local(x))

    def sharing(parts: Any) -> Any:
        flat = [part for one in parts for part in (one if type(one) is list else [one])]
        memory = [np.frombuffer(part, np.uint8) if type(part) is np.void else part for part in flat]
        pairs = [(i, j) for i in range(len(flat)) for j in range(i)]
        return [np.shares_memory(memory[i], memory[j]) for i, j in pairs]

    x = np.array([2.0, 0.5, 3.0])
    expected, found = function(x), jk.jit(function)(x)
    assert sharing(found) == sharing(expected)
    assert str(found) == str(expected)


def test_an_array_that_is_returned_twice_is_one_object() -> None:
    def function(x: Any) -> Any:
        result = local(x)
        return result, [result]

    first, (second,) = jk.jit(function, strict=True)(np.array([2.0, 0.5]))
    assert first is second
