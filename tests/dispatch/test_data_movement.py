"""Functions that only move elements: without kernels or buffers, and from any layout."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_everyday_forms import bits, compiled, numbers

import jitkernels as jk
from jitkernels.attrs.schema.registry import all_schemas
from jitkernels.attrs.schema.schema_queries import outputs_of
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import array_layouts
from jitkernels.tools.testing.guard_pages import Guarded

RIGHT: dict[str, Callable[[AnyArray], AnyArray]] = {
    "VIDENTITY": lambda x: x,
    "VCOPY": lambda x: x,
    "TRANSPOSE": lambda x: x.swapaxes(-1, -2),
    "VBROADCAST": lambda x: np.broadcast_to(x, (3, *x.shape)),
}
SHAPES = ((40,), (1, 1), (25, 90), (33, 9), (9, 8, 17), (11, 2, 3, 10))
LAYOUTS: dict[str, Callable[[AnyArray], AnyArray]] = {
    "plain": lambda x: x,
    **{name: array_layouts.EVERYWHERE[name] for name in ("strided", "columns", "reversed", "Fortran", "repeated")},
    "axes in another order": lambda x: np.ascontiguousarray(np.moveaxis(x, -1, 0)).transpose(*range(1, x.ndim), 0),
    "a third of a row": lambda x: np.repeat(x, 3, -1)[..., ::3],
}


def test_all_rows_that_move_data_are_tested() -> None:
    assert {row.kernel_type.name for row in all_schemas() if outputs_of(row)[0].moves} == {*RIGHT}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "float16"])
@pytest.mark.parametrize("name", RIGHT)
def test_copies_between_any_layouts(name: str, dtype: str) -> None:
    function = getattr(jk, name.lower())
    more = {"h": 3} if name == "VBROADCAST" else {}
    for shape, (start, end) in itertools.product(SHAPES, itertools.product(LAYOUTS, repeat=2)):
        fits = len(shape) == 1 if name == "VBROADCAST" else len(shape) > (name == "TRANSPOSE")
        if not fits or end == "repeated":
            continue
        x = LAYOUTS[start](numbers(int(np.prod(shape)), dtype).reshape(shape))
        expected = RIGHT[name](x)
        if end == "plain":
            assert np.array_equal(compiled(function, x, **more), expected), (shape, start)
        for out_dtype in ("float32", "float64"):
            room = LAYOUTS[end](np.full(expected.shape, 7, out_dtype))
            base: Any = room if room.base is None else room.base
            kept = base.copy()
            assert compiled(function, x, **more, out=room) is room
            assert np.array_equal(room, expected), (shape, start, end)
            room[...] = 7
            assert np.array_equal(base, kept), "nothing beside the result was written"


@pytest.mark.parametrize("name", RIGHT)
def test_copies_onto_overlapping_memory(name: str) -> None:
    if name == "VBROADCAST":
        return
    function, start = getattr(jk, name.lower()), np.arange(81.0).reshape(9, 9)
    for layout in LAYOUTS.values():
        if layout is not LAYOUTS["repeated"]:
            x = layout(start.copy())
            assert compiled(function, x, out=x) is x
            once = RIGHT[name](start)
            assert np.array_equal(x, once) or np.array_equal(x, RIGHT[name](once)), "called twice"
    for one, other in ((x[1:], x[:-1]), (x[:, 1:], x[:, :-1]), (x[::-1], x), (x[:, ::-1], x), (x.T, x)):
        expected = RIGHT[name](one.copy())
        out = other if name != "TRANSPOSE" or one.shape == (9, 9) else other.T
        function(one, out=out)
        assert np.array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int64"])
@pytest.mark.parametrize("gap", [2, 3, 4, 5, -3])
def test_gaps_between_elements_are_not_touched(gap: int, dtype: str) -> None:
    for n in (*range(1, 5), *range(15, 53), 600):
        for side in ("start", "end"):
            room = Guarded(np.repeat(numbers(n, dtype), abs(gap))[: (n - 1) * abs(gap) + 1], side)
            x = room.array[::gap]
            plain = x.copy()
            result = jk.vcopy(x)
            assert np.array_equal(result, plain)
            assert np.array_equal(jk.vadd(x, plain), result + result)
            out = Guarded(np.zeros((n - 1) * abs(gap) + 1, result.dtype), side)
            jk.vcopy(x, out=out.array[::gap])
            assert np.array_equal(out.array[::gap], plain)
            assert not out.array[1 :: abs(gap)].any(), "written between elements"
            assert room.intact()
            assert out.intact()


@pytest.mark.parametrize("shape", [(9, 33), (312, 320), (700, 8), (8, 700), (3, 2000), (2, 40, 24)])
def test_squares_of_transposed_arrays(shape: tuple[int, ...]) -> None:
    """Blocks of elementwise functions have enough rows to transpose matrices in square tiles."""
    x, y = np.random.default_rng(0).normal(size=(2, *shape))
    for dtype in ("float32", "float64"):
        one, other = x.astype(dtype), y.astype(dtype)
        expected, transposed = one - other, np.asfortranarray(other)
        assert np.array_equal(compiled(jk.vsub, one, transposed), expected)
        assert np.array_equal(compiled(jk.vsub, np.asfortranarray(one), other), expected)
        for beside in (other[:1], other[..., :1], np.asfortranarray(other[..., :1])):
            assert np.array_equal(compiled(jk.vsub, np.asfortranarray(one), beside), one - beside)
        out = np.full_like(transposed, 7)
        compiled(jk.vsub, one, other, out=out)
        assert np.array_equal(out, expected)
        compiled(jk.vsub, one, transposed, out=out[..., ::-1])
        assert np.array_equal(out[..., ::-1], expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_axes_in_any_order(dtype: str) -> None:
    for shape in ((9, 3, 17), (16, 8, 9), (8, 2, 3, 11), (10, 8, 1, 9)):
        for order in itertools.permutations(range(len(shape))):
            x = numbers(int(np.prod(shape)), dtype).reshape(shape).transpose(order)
            assert np.array_equal(compiled(jk.vcopy, x), x)
            back = np.zeros(x.shape, dtype).transpose(np.argsort(order))
            assert np.array_equal(compiled(jk.vcopy, x.transpose(np.argsort(order)), out=back), back)
            np.testing.assert_allclose(compiled(jk.softmax, x), jk.softmax(x.copy()), rtol=1e-5, atol=1e-30)
            assert np.array_equal(compiled(jk.vadd, x, x.copy()), x + x)


@pytest.mark.parametrize("dtype", ["float32", "int16"])
@pytest.mark.parametrize("h", [1, 7, 8, 9, 15, 16, 17, 40, 600])
def test_rows_of_several_dimensions_in_any_order(h: int, dtype: str) -> None:
    """Blocks have enough rows to transpose operands of another order in square tiles."""
    scales = numbers(16, "float32", 1)
    for w in (1, 9, 300):
        x = numbers(h * w * 16, dtype).reshape(h, w, 16)
        expected = x * scales
        for order in itertools.permutations(range(3)):
            transposed = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
            assert np.array_equal(compiled(jk.nchw16c_mul_nc, transposed, scales), expected)
            out = np.full_like(expected.transpose(order), 7).transpose(np.argsort(order))
            assert np.array_equal(compiled(jk.nchw16c_mul_nc, x, scales, out=out), expected)


def test_optimizers_accept_fortran_order() -> None:
    arrays = [np.random.default_rng(i).uniform(0.5, 1.5, (31, 17)) for i in range(5)]
    for count in (4, 5):
        functions: list[Any] = [jk.adam, jk.adamw]
        for function in functions:
            right = function(*arrays[:count])
            found = compiled(function, *map(np.asfortranarray, arrays[:count]))
            for one, other in zip(found, right, strict=True):
                assert np.array_equal(one, other)
            mixed = compiled(function, *map(np.asfortranarray, arrays[: count - 1]), arrays[count - 1])
            for one, other in zip(mixed, right, strict=True):
                assert np.array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_short_rows_are_repeated(dtype: str) -> None:
    """More rows than fit in the buffer at once, with a remainder at the end."""
    for w, h in itertools.product((0, 1, 2, 3, 7, 15, 16, 17), (0, 1, 2, 63, 1024, 2050)):
        x = np.arange(1, w + 1).astype(dtype)
        assert np.array_equal(jk.vbroadcast(x, h), np.broadcast_to(x, (h, w))), (w, h)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_byte_swapped_and_unaligned_floats(dtype: str) -> None:
    """Compiled code reads them in place, alone and beside others, which keep their dtype."""
    for n in (1, 15, 16, 33, 700):
        x, y = numbers(n, dtype), numbers(n, "float32", 1)
        for change in (array_layouts.byte_swapped, array_layouts.unaligned):
            strange = array_layouts.unaligned(change(x))
            assert bits(compiled(jk.vmul, strange, y)) == bits(x * y)
            assert bits(compiled(jk.vmul, y[::-1], strange[::-1])) == bits(x[::-1] * y[::-1])
            assert bits(compiled(jk.vcopy, strange)) == bits(x)
            assert bits(compiled(jk.vscal, strange[0], x)) == bits(x[0] * x)
            assert bits(compiled(jk.vadd, strange.reshape(n, 1), x)) == bits(x[:, None] + x)
