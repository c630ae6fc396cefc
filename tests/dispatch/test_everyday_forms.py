"""Operands of every layout through the dispatcher, without Python: bitwise the results of contiguous arrays."""

import itertools
from collections.abc import Callable
from typing import Any, Literal

import cases
import numpy as np
import pytest
import test_everyday
from test_everyday import SAME_VALUES, Giving, Row, arrays_only, as_tuple, example, function_of

import jitkernels as jk
from jitkernels.attrs.schema.base import FLOATS, KernelAttr
from jitkernels.attrs.schema.signature import AnyArray, Argument
from jitkernels.dispatch import operators
from jitkernels.errors import DataIndexError, JitKernelsError, RegistrationError
from jitkernels.tools import testing

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
)  # fmt: skip
LENGTHS = (0, 1, 7, 16, 17, 511, 512, 513, 1025, 1600)
"""Around the dispatcher's vectors and blocks."""


def compiled(function: Any, *arguments: Any, **named: Any) -> Any:
    """The result of a call, which may come to Python once, but not again."""
    result = function(*arguments, **named)
    if getattr(getattr(function, "__self__", None), "_table", "") is None:
        return result  # Python serves all calls
    computes = operators.Everyday._compute
    operators.Everyday._compute = _came  # type: ignore[method-assign]  # mock.patch takes a millisecond
    try:
        return function(*arguments, **named)
    finally:
        operators.Everyday._compute = computes  # type: ignore[method-assign]


def _came(*_: Any, **__: Any) -> Any:
    raise AssertionError("came to Python")


def bits(results: Any) -> list[tuple[Any, ...]]:
    return [(result.dtype, result.shape, result.tobytes()) for result in as_tuple(results)]


def numbers(count: int, dtype: str, seed: int = 0) -> AnyArray:
    values = np.random.default_rng(seed).integers(0, 100, count)
    return values > 50 if dtype == "bool" else values.astype(dtype)


def test_calls_through_python_are_caught() -> None:
    with pytest.raises(AssertionError, match="came to Python"):
        compiled(jk.vmul, Giving(np.ones(3, np.float32)), np.ones(3, np.float32))


@pytest.mark.parametrize("form", ["unaligned", "byte_swapped", "subclass"])
@pytest.mark.parametrize("row", cases.every_form())
def test_forms_of_memory_that_are_copied(row: Row, form: str) -> None:
    """NumPy copies such an input; a result is computed in a buffer. Subclasses are arrays."""
    for dtype in FLOATS:
        _, given = example(row, dtype)
        right = as_tuple(compiled(function_of(row), **given))
        for _ in range(2):
            strange = arrays_only(given, SAME_VALUES[form])
            assert bits(compiled(function_of(row), **strange)) == bits(right)
            outs = tuple(SAME_VALUES[form](np.zeros_like(result)) for result in right)
            out = outs if len(outs) > 1 else outs[0]
            assert compiled(function_of(row), **strange, out=out) is out
            assert bits(test_everyday.in_dtype(outs, dtype)) == bits(right)


@pytest.mark.parametrize("form", ["unaligned", "byte_swapped"])
def test_invalid_outs_that_need_a_buffer_are_rejected(form: str) -> None:
    x = numbers(6, "float32")
    for wrong in (np.zeros(5, np.float32), np.zeros((2, 3), np.float32), np.zeros(6, np.int32)):
        out = SAME_VALUES[form](wrong)
        with pytest.raises(JitKernelsError, match="out: expected"):
            jk.vmul(x, x, out=out)
        assert not out.any()
    room = np.frombuffer(bytearray(41), np.uint8)
    over, y = room[1:25].view(np.float32), x[:3]
    over[:] = x
    jk.vmul(over[:3], y, out=over[1:4])
    assert np.array_equal(over[1:4], x[:3] * y)
    with pytest.raises(JitKernelsError, match="do not overlap"):
        jk.lstm_ctht(np.ones(8), np.ones(2), out=(room[1:17].view(np.float64), room[1:17].view(np.float64)))


@pytest.mark.parametrize("one", DTYPES)
def test_arrays_of_two_dtypes(one: str) -> None:
    """These products are exact: the bits equal those of converting first."""
    for other, n in itertools.product(DTYPES, LENGTHS):
        x, y = numbers(n, one), numbers(n, other, 1)
        wide = "float32" if np.result_type(x, y) in (np.float16, np.float32) else "float64"
        expected = x.astype(wide) * y.astype(wide)
        assert bits(compiled(jk.vmul, x, y)) == bits(expected), (other, n)
        assert bits(compiled(jk.vmul, x[::-1], y[::-1])) == bits(expected[::-1].copy()), (other, n)
        room = np.full(n + 2, 7, wide)
        assert compiled(jk.vmul, x, y, room[1:-1]).base is room
        assert bits(room[1:-1].copy()) == bits(expected), (other, n)
        assert room[0] == room[-1] == 7


@pytest.mark.parametrize("narrow", ["uint8", "float32"])
def test_out_over_a_converted_input(narrow: str) -> None:
    """As if the input had been read before anything was written."""
    for n, shift in itertools.product((5, 600), (0, 1, 3, 8)):
        room = np.zeros(8 * n + 64, np.uint8)
        x = room[shift * 4 :][: n * np.dtype(narrow).itemsize].view(narrow)
        x[...] = numbers(n, narrow)
        out, y = room[: 8 * n].view(np.float64), numbers(n, "float64", 1)
        expected = x.astype(np.float64) * y
        jk.vmul(x, y, out=out)
        assert bits(out.copy()) == bits(expected), (n, shift)


def layouts(value: AnyArray, seed: int) -> AnyArray:
    """The same values with axes in another order of memory, gaps and negative strides."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(value.ndim)
    steps = [int(generator.choice([-2, -1, 1, 1, 3])) for _ in order]
    room = np.zeros([value.shape[axis] * abs(step) for axis, step in zip(order, steps, strict=True)], value.dtype)
    view = room[tuple(slice(None, None, step) for step in steps)].transpose(np.argsort(order))
    view[...] = value
    return view


SHAPES = (
    (40,),
    (24, 40),
    (3, 320),
    (320, 3),
    (8, 10, 12),
    (3, 4, 4, 20),
    (20, 4, 4, 3),
    (2, 1, 3, 4, 5),
    (5, 4, 4, 4, 3),
)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_axis_of_every_layout(shape: tuple[int, ...]) -> None:
    """Rows are the same in any layout; results are stored in the layout of ``out``."""
    for axis, dtype, seed in itertools.product(range(len(shape)), ("float32", "float64", "int16"), range(3)):
        values = (np.random.default_rng(seed).uniform(-9, 9, shape)).astype(dtype)
        computed = "float64" if dtype == "int16" else dtype
        rows = np.ascontiguousarray(np.moveaxis(values, axis, -1)).astype(computed)
        right = np.moveaxis(jk.softmax(rows), -1, axis)
        x, out = layouts(values, seed), layouts(np.zeros(shape, computed), seed + 100)
        for number in (axis, axis - len(shape)):
            np.testing.assert_allclose(compiled(jk.softmax, x, axis=number), right, rtol=1e-5)
            np.testing.assert_allclose(compiled(jk.softmax, x, number, out), right, rtol=1e-5)
        np.testing.assert_array_equal(x, values)


TABLES: dict[str, Callable[[AnyArray], AnyArray]] = {
    "Fortran": np.asfortranarray,
    "columns": lambda table: np.pad(table, ((0, 0), (0, 3)))[:, : table.shape[1]],
    "every second": lambda table: np.repeat(table, 2, axis=0)[::2],
    "reversed": lambda table: np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1],
    "broadcast": lambda table: np.broadcast_to(table[3], table.shape),
    "float16": lambda table: table.astype(np.float16),
    "int32": lambda table: np.rint(9 * table).astype(np.int32),
}


@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
@pytest.mark.parametrize("form", TABLES)
def test_tables_of_any_layout(form: str, pool: Literal["sum", "mean", "max"]) -> None:
    """Few ids and many, of any dtype and layout."""
    generator = np.random.default_rng(0)
    for dtype, width, (height, columns) in itertools.product(FLOATS, (1, 7, 40), ((1, 1), (2, 5), (9, 3), (60, 2))):
        table = TABLES[form](generator.uniform(-1, 1, (50, width)).astype(dtype))
        ids = generator.integers(0, 50, (height, columns))
        wide = "float64" if form == "int32" else "float32" if form == "float16" else dtype
        right = jk.emb_seq_pool(np.ascontiguousarray(table).astype(wide), ids, pool)
        kinds = [ids.astype(kind) for kind in DTYPES[1:9]]
        for numbering in (ids, *kinds, np.asfortranarray(ids), ids[::-1].copy()[::-1]):
            np.testing.assert_allclose(compiled(jk.emb_seq_pool, table, numbering, pool), right, rtol=1e-5)


@pytest.mark.parametrize("wrong", [-1, 50, 1 << 40, -(1 << 63), 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("form", TABLES)
def test_indices_beyond_tables_of_any_layout(form: str, wrong: int) -> None:
    table, ids = TABLES[form](numbers(350, "float32").reshape(50, 7)), np.arange(6).reshape(3, 2)
    out = np.full(14, 7, "float64" if form == "int32" else "float32")
    jk.emb_seq_pool(table, ids)
    if wrong >= 1 << 63:
        ids = ids.astype(np.uint64)
        jk.emb_seq_pool(table, ids)
    ids[2, 1] = wrong
    with pytest.raises(DataIndexError, match=r"at \[2, 1\]|ids: expected integers of 64 bits with a sign, got"):
        jk.emb_seq_pool(table, ids, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("table", "ids"),
    [
        (Argument("table", "in", "n w"), Argument("ids", "in", "k", dtype="int64", picks="tabel")),
        (Argument("table", "in", "n w"), Argument("ids", "in", "n", dtype="int64", picks="table")),
        (Argument("table", "in", "*n w"), Argument("ids", "in", "k", dtype="int64", picks="table")),
        (Argument("table", "in", "2*n w"), Argument("ids", "in", "k", dtype="int64", picks="table")),
        (Argument("table", "in", "n w"), Argument("ids", "in", "k", picks="table")),
        (Argument("table", "in", "n w"), Argument("ids", "in", "k", dtype="int64", picks="ids")),
    ],
)
def test_tables_that_cannot_be_indexed(table: Argument, ids: Argument) -> None:
    fields = {"n": int, "w": int, "k": int, "dtype": str}
    arrays = (table, ids, Argument("out", "out", "w"))
    with pytest.raises(RegistrationError, match="array ids: picks: expected the name of an input"):
        type("PickingAttr", (KernelAttr,), {"__annotations__": fields, "arrays": arrays}, kernel_type="PICKING")


def apart(table: AnyArray, side: Literal["start", "end"], gap: int) -> tuple[testing.Guarded, AnyArray]:
    """The same, its rows so many elements apart and nothing behind the last one."""
    rows, columns = table.shape
    room = np.full((rows, columns + gap), 77, table.dtype)
    room[:, :columns] = table
    guard = testing.Guarded(room.ravel()[: rows * (columns + gap) - gap], side)
    strides = ((columns + gap) * table.itemsize, table.itemsize)
    return guard, np.lib.stride_tricks.as_strided(guard.array, table.shape, strides)


def transposed(table: AnyArray, side: Literal["start", "end"], gap: int) -> tuple[testing.Guarded, AnyArray]:
    """The same, its columns so many elements apart."""
    guard, view = apart(table.T, side, gap)
    return guard, view.T


@pytest.mark.parametrize("dtype", [*FLOATS, "float16"])
@pytest.mark.parametrize("lay", [apart, transposed])
def test_matrices_of_every_shape_and_layout(lay: Any, dtype: str) -> None:
    """As inputs and as results, at either end of a page: nothing outside a row is read or written."""
    for rows, columns in itertools.product((1, 2, 4, 7, 8, 9, 16, 17, 24, 33), repeat=2):
        table = numbers(rows * columns, dtype, rows).reshape(rows, columns)
        other = numbers(columns * 5, dtype, columns).reshape(columns, 5)
        right = jk.vmul(table, table), jk.matmul(table, other), jk.matmul(other.T, table.T)
        sides: tuple[Literal["start", "end"], ...] = ("start", "end")
        for side, gap in itertools.product(sides, (0, 3)):
            _, strange = lay(table, side, gap)
            assert bits(compiled(jk.vmul, strange, table)) == bits(right[0]), (rows, columns)
            assert bits(compiled(jk.matmul, strange, other)) == bits(right[1]), (rows, columns)
            for function, given, wanted in (
                (jk.vmul, (table, table), right[0]),
                (jk.matmul, (table, other), right[1]),
                (jk.matmul, (other.T, table.T), right[2]),
            ):
                guard, out = lay(np.zeros_like(wanted), side, gap)
                assert compiled(function, *given, out=out) is out
                assert np.array_equal(out, wanted), (rows, columns)
                assert guard.intact()
                assert (rest(guard.array, out) == 77).all()


def rest(whole: AnyArray, view: AnyArray) -> AnyArray:
    """The elements of an array that a view of it leaves out."""
    taken = np.zeros(whole.size, bool)
    np.lib.stride_tricks.as_strided(taken, view.shape, [stride // view.itemsize for stride in view.strides])[...] = True
    return whole[~taken]
