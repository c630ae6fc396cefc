"""Single operations on operands of any memory layout: copies, concatenation, searches, results."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk

SIZES = (1, 2, 3, 5, 16, 17, 63, 64, 65, 130, 257, 700)
DTYPES = ("bool", "uint8", "int32", "float64")


def numbers(dtype: str, count: int) -> Any:
    found = np.random.default_rng(count).integers(0, 100, count)
    return found % 3 == 0 if dtype == "bool" else found.astype(dtype)


def compiled(function: Callable[..., Any]) -> Any:
    return jk.jit(function)


def only_kernels(function: Any, *arguments: Any) -> bool:
    """Whether such a call is compiled code alone."""
    return "0 calls of NumPy" in str(function.explain(*arguments))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [-4, -3, -2, -1, 2, 3, 4, 5])
def test_strided_arrays_are_read_and_written(dtype: str, step: int) -> None:
    @compiled
    def read(x: Any) -> Any:
        return x == x.dtype.type(1)

    @compiled
    def write(x: Any, y: Any) -> Any:
        x[...] = y
        return x

    for size in SIZES:
        whole = numbers(dtype, size * abs(step))
        part = whole[::step]
        np.testing.assert_array_equal(read(part), part == part.dtype.type(1))
        new, expected, other = numbers(dtype, len(part) + 1)[1:], whole.copy(), whole.copy()
        expected[::step] = new
        target = other[::step]
        assert write(target, new) is target
        np.testing.assert_array_equal(other, expected)


MOVERS: dict[str, Callable[[Any], Any]] = {
    "repeat": lambda x: np.repeat(x, 3, axis=0),
    "repeat within": lambda x: np.repeat(x, 2, axis=-1),
    "tile": lambda x: np.tile(x, 3),
    "ravel": lambda x: x.ravel() == x.dtype.type(1),
    "stack": lambda x: np.stack([x, x, x], axis=-1),
    "concatenate": lambda x: np.concatenate([x, x]),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "argmax": lambda x: np.argmax(x, axis=0),
    "any": lambda x: np.any(x, axis=-1),
}


def layouts(dtype: str) -> list[Any]:
    whole = numbers(dtype, 9000)
    return [
        whole[:1000].reshape(50, 20),
        whole[:1000].reshape(50, 20).T,
        whole[:4000].reshape(50, 80)[:, :20],
        whole[:900].reshape(300, 3),
        whole[:900].reshape(300, 3)[::-1, ::-1],
        whole[:900].reshape(3, 300).T,
        whole[:6000].reshape(1000, 6)[:, :5],
        whole[:12].reshape(3, 4)[:, ::2],
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MOVERS)
def test_movers_are_compiled_in_all_layouts(name: str, dtype: str) -> None:
    function = compiled(MOVERS[name])
    for array in layouts(dtype):
        for _ in range(2):
            np.testing.assert_array_equal(function(array), MOVERS[name](array))
        assert only_kernels(function, array)


@pytest.mark.parametrize("name", ["concatenate", "roll"])
def test_concatenations_have_the_layout_of_their_parts(name: str) -> None:
    array = numbers("int32", 1000).reshape(50, 20).T
    found, expected = compiled(MOVERS[name])(array), MOVERS[name](array)
    assert found.strides == expected.strides
    whole = numbers("int32", 1000)
    stacked = compiled(MOVERS["stack"])(whole)
    assert stacked.strides == MOVERS["stack"](whole).strides


@pytest.mark.parametrize("name", ["any", "all", "argmax", "argmin"])
@pytest.mark.parametrize("size", [1, 40, 64, 257, 5000, 40_000])
def test_argmax_of_bools_finds_the_first_match(name: str, size: int) -> None:
    plain = getattr(np, name)
    function, within = compiled(lambda x: plain(x)), compiled(lambda x: plain(x, axis=-1))
    for fill in (False, True):
        for first in {0, 1 % size, size // 2, 4095 % size, 4096 % size, size - 1}:
            for second in (first, size - 1):
                array = np.full(size, fill)
                array[[first, second]] = not fill
                assert function(array) == plain(array)
                rows = np.stack([array, np.full(size, fill), array[::-1]])
                np.testing.assert_array_equal(within(rows), plain(rows, axis=-1))
        assert function(np.full(size, fill)) == plain(np.full(size, fill))


def test_fused_searches_end_independently() -> None:
    @compiled
    def several(x: Any) -> Any:
        return np.any(x > 1), np.argmax(x > 1), x.sum(), np.all(x < 2)

    array = np.ones(50_000)
    array[3] = 2
    for found, expected in zip(several(array), several.__wrapped__(array), strict=True):
        assert found == expected


def test_writes_to_self_overlapping_arrays_match_numpy() -> None:
    def add(x: Any, y: Any) -> Any:
        x += y
        return x

    function = compiled(add)
    function(np.arange(200).reshape(10, 20)[:, :10], np.ones((10, 10), int))
    mine, other = (np.lib.stride_tricks.as_strided(np.arange(100), (10, 10), (24, 8)) for _ in range(2))
    assert function(mine, np.ones((10, 10), int)) is mine
    add(other, np.ones((10, 10), int))
    np.testing.assert_array_equal(mine, other)


def test_writes_to_overlapping_arguments_match_numpy() -> None:
    def add(x: Any, y: Any) -> Any:
        x += y
        return x

    function = compiled(add)
    memory, other = np.arange(100), np.arange(100)
    function(np.arange(40)[::2], np.arange(40)[1::2])
    for one in (memory, other):
        (function if one is memory else add)(one[10:50:2], one[9:49:2])
        (function if one is memory else add)(one[10:50:2], one[12:52:2])
        (function if one is memory else add)(one[50:10:-1], one[52:12:-1])
    np.testing.assert_array_equal(memory, other)


def test_functions_without_kernels_become_the_plain_function() -> None:
    function = compiled(lambda x: np.argpartition(x, 10))
    array = np.random.default_rng(0).random(200_000)
    for _ in range(2):
        np.testing.assert_array_equal(function(array), np.argpartition(array, 10))
    assert [
        one.max_plain_elements_at_once > array.size for kept in function._specializations.values() for one in kept
    ] == [True]


ORDERS: dict[str, Any] = {
    "copy of a transpose": lambda x: x.T.copy(),
    "copy of a sum": lambda x: (x.T + 1).copy(),
    "copy F": lambda x: x.copy("F"),
    "copy K": lambda x: x.T.copy("K"),
    "copy A": lambda x: x.T.copy("A"),
    "np.copy": lambda x: np.copy(x.T),
    "np.copy C": lambda x: np.copy(x.T, order="C"),
    "np.copy F": lambda x: (np.copy(x, order="F"), x + 1),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x.T * 2),
    "array C": lambda x: np.array(x.T, order="C"),
    "array F": lambda x: np.array(x, order="F"),
    "astype C": lambda x: x.T.astype("f4", order="C"),
    "astype F": lambda x: x.astype("f4", order="F"),
    "ones F": lambda x: np.ones((3, 4), order="F"),
    "product F": lambda x: (x @ x.T).copy("F"),
    "twice": lambda x: (lambda y: (y, y.copy("C"), y.copy("F")))(x.T + 1),
    "transposed beside a row": lambda x: x.T + x[0, :1] * 2,
    "rows beside transposed": lambda x: x[:20, :20] + x.T[:20, :20],
    "transposed first": lambda x: x.T[:20, :20] + x[:20, :20],
    "one row": lambda x: x.T[:, :1] * 2,
}


@pytest.mark.parametrize("name", ORDERS)
def test_explicit_orders(name: str) -> None:
    """Results have NumPy's order whatever is read; C order where operands disagree."""
    function = ORDERS[name]
    for given in (
        np.arange(600.0).reshape(20, 30),
        np.asfortranarray(np.arange(600.0).reshape(20, 30)),
        np.arange(1200.0).reshape(20, 60)[:, ::2],
        np.arange(600.0).reshape(30, 20)[::-1],
    ):
        compiled: Any = jk.jit(function)
        for _ in range(3):
            found, right = compiled(given), function(given)
            for one, other in zip(found, right, strict=True) if isinstance(right, tuple) else [(found, right)]:
                assert one.strides == other.strides
                np.testing.assert_allclose(one, other)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z.T + 1,
        lambda z: np.concatenate([z.T, z.T]),
        lambda z: np.concatenate([z.T, np.reshape(z * 2, z.T.shape)]),
        lambda z: (z.T * 2).copy(),
        lambda z: z.copy("F"),
        lambda z: z.transpose(1, 0, 2).sum(axis=2),
        lambda z: z.T.max(axis=0),
        lambda z: z.T.var(axis=1),
        lambda z: z.transpose(2, 0, 1).mean(axis=1),
        lambda z: (z.T > 3).any(axis=1),
        lambda z: z.T.argmax(axis=0),
        lambda z: z.T - z.T.mean(axis=0),
        lambda z: z.T.cumsum(axis=0),
        lambda z: z.T.sum(axis=1, keepdims=True),
    ],
)
def test_orders_of_three_dimensions(function: Any) -> None:
    compiled: Any = jk.jit(function)
    for shape in ((10, 12, 20), (3, 4, 5)):
        given = np.arange(np.prod(shape, dtype=float)).reshape(shape)
        for _ in range(3):
            found, right = compiled(given), function(given)
            steps = zip(right.shape, found.strides, right.strides, strict=True)
            assert all(extent == 1 or one == other for extent, one, other in steps)
            np.testing.assert_allclose(found, right, atol=1e-9)
        out = np.empty_like(right)
        np.testing.assert_allclose(compiled(given, out=out), right, atol=1e-9)


ORDERED: dict[str, Callable[[Any, Any], Any]] = {
    "copy": lambda x, order: np.copy(x, order=order),
    "method copy": lambda x, order: x.copy(order),
    "astype": lambda x, order: x.astype("f4", order=order),
    "array": lambda x, order: np.array(x, order=order),
    "array of a dtype": lambda x, order: np.array(x, "f4", order=order),
    "asarray": lambda x, order: np.asarray(x, order=order),
    "ravel": lambda x, order: np.ravel(x, order),
    "ravel of a result": lambda x, order: np.ravel(np.ascontiguousarray(x), order),
    "flatten": lambda x, order: x.flatten(order),
    "reshape": lambda x, order: np.reshape(x, (-1, 2), order="C" if order == "K" else order),
    "zeros": lambda x, order: np.zeros(x.shape, order=order if order in "CF" else "C"),
    "ascontiguousarray": lambda x, order: np.ascontiguousarray(x),
    "asfortranarray": lambda x, order: np.asfortranarray(x),
    "triangle": lambda x, order: np.tril(x, 1) if x.ndim == 2 else x.copy(),
}


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("name", ORDERED)
def test_copies_in_explicit_orders(name: str, order: str) -> None:
    function = jk.jit(ORDERED[name], static_argnames="order", profile=True)  # however few elements there are
    whole = numbers("float64", 7200).reshape(10, 60, 12)
    for array in (whole, whole[0], whole[0].T, whole[:, :, 0].T, whole.transpose(1, 0, 2), whole.T, whole[0, 0]):
        found, expected = function(array, order), ORDERED[name](array, order)
        assert (found is array) == (expected is array)
        assert np.shares_memory(found, array) == np.shares_memory(expected, array)
        assert found.strides == expected.strides
        np.testing.assert_array_equal(found, expected)


def test_c_order_wins_where_layouts_differ() -> None:
    function = compiled(lambda x, y: x + y)
    one = numbers("float64", 600).reshape(30, 20)
    other = numbers("float64", 601)[1:].reshape(20, 30).T
    three = numbers("int32", 6000).reshape(10, 30, 20)
    for x, y in (
        (one, other),
        (other, one),
        (other, other),
        (three, three.transpose(0, 2, 1).copy().transpose(0, 2, 1)),
    ):
        for _ in range(2):
            assert function(x, y).strides == (x + y).strides
            np.testing.assert_array_equal(function(x, y), x + y)


def _both_ways(x: Any) -> None:
    x[3:] = x[1:-2]
    x[:-1] = x[1:]


def _reversed(x: Any) -> None:
    y = x[::-1]
    y[1:] = y[:-1]


def _along_two(x: Any) -> None:
    x[1:, 1:] = x[:-1, :-1]
    x[:-1, 1:] = x[1:, :-1]
    x[:, :-2] = x[:, 2:]


OVERLAPS: dict[str, Callable[[Any], None]] = {
    "x[1:] = x[:-1]": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "x[:-1] = x[1:] + x[:-1]": lambda x: x.__setitem__(slice(None, -1), x[1:] + x[:-1]),
    "x[1:-1] = x[:-2] + x[2:]": lambda x: x.__setitem__(slice(1, -1), x[:-2] + x[2:]),
    "x[::2] = x[1::2]": lambda x: x.__setitem__(slice(None, -1, 2), x[1::2][: len(x) // 2]),
    "both ways": _both_ways,
    "reversed": _reversed,
    "along two dimensions": _along_two,
}


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("name", OVERLAPS)
def test_overlapping_assignments_match_numpy(name: str, dtype: str) -> None:
    change = OVERLAPS[name]
    function = jk.jit(lambda x: change(x))
    shapes: list[tuple[int, ...]] = [(7, 5), (3, 40), (40, 3), (300, 301)]
    shapes += [(size,) for size in (5, 17, 64, 65, 1001, 100_001)] if "two" not in name else []
    steps = (slice(None), slice(None, None, -1), slice(None, None, 2))
    for shape in shapes:
        for step in steps:
            for order in ("C", "F"):
                whole = numbers(dtype, int(np.prod(shape))).reshape(shape)
                found, expected = (np.array(whole, order=order)[(step,) * len(shape)] for _ in range(2))
                function(found)
                change(expected)
                np.testing.assert_array_equal(found.base, expected.base)


@pytest.mark.parametrize(
    ("name", "kernels"),
    [
        ("x[1:] = x[:-1]", 1),
        ("reversed", 1),
        ("both ways", 2),
        ("along two dimensions", 3),
        ("x[1:-1] = x[:-2] + x[2:]", 2),
    ],
)
def test_overlapping_moves_in_one_direction_need_no_copy(name: str, kernels: int) -> None:
    shape = (30, 40) if "two" in name else (1200,)
    assert jk.jit(lambda x: OVERLAPS[name](x)).explain(np.ones(shape)).kernels == kernels


JOINED: dict[str, Callable[[Any], Any]] = {
    "stack first": lambda x: np.stack([x, x]),
    "stack last": lambda x: np.stack([x, x, x], axis=-1),
    "concatenate": lambda x: np.concatenate([x * 2, x], axis=-1),
    "with a row": lambda x: np.concatenate([x[:1], x]),
    "with zeros": lambda x: np.concatenate([x, np.zeros(x.shape, x.dtype)]),
    "broadcast": lambda x: np.concatenate([np.broadcast_to(x[:1], x.shape), x]),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "pad": lambda x: np.pad(x, 1),
    "sum": lambda x: x + 1,
}


@pytest.mark.parametrize("name", JOINED)
def test_concatenations_have_numpys_strides_and_own_their_memory(name: str) -> None:
    function = jk.jit(lambda x: JOINED[name](x))
    for shape in ((4, 5), (5, 6, 7), (3, 4, 5, 6)):
        whole = numbers("int32", int(np.prod(shape)))
        for order in itertools.permutations(range(len(shape))):
            array = whole.reshape([shape[i] for i in order]).transpose(np.argsort(order))
            expected = JOINED[name](array)
            for _ in range(2):
                found = function(array)
                np.testing.assert_array_equal(found, expected)
                assert found.strides == expected.strides
                assert found.base is None or expected.base is not None
            out = np.empty(expected.shape, expected.dtype)
            assert function(array, out=out) is out
            np.testing.assert_array_equal(out, expected)
