"""Transposes: squares of elements go through registers, the rest is gathered, for all extents, dtypes and layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.nest.transposed_loads import TransposedLoads
from jitkernels.compiler.lowering.transposed_copy import transposed_copy

EXTENTS = (15, 16, 17, 33, 64)
"""Around whole squares, and with rows that are multiples of a cache line."""


def plain(a: Any, out: Any) -> None:
    out[...] = a.T


def of_inner_axes(a: Any, out: Any) -> None:
    out[...] = np.transpose(a, (0, 2, 1))


def of_filters(a: Any, out: Any) -> None:
    out[...] = np.transpose(a, (0, 2, 1))[::-1]


def backwards(a: Any, out: Any) -> None:
    out[...] = a.T[::-1, ::-1]


def with_others(a: Any, out: Any) -> None:
    out[...] = a.T * 2 + np.arange(a.shape[0]) + a[0, :, None]


def of_two(a: Any, out: Any) -> None:
    out[...] = a.T - a[::-1].T


PROGRAMS: dict[Callable[..., None], int] = {
    plain: 2, of_inner_axes: 3, of_filters: 3, backwards: 2, with_others: 2, of_two: 2,
}  # fmt: skip
"""With the dimensions of their operand."""
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.copy,
    "Fortran": np.asfortranarray,
    "every second column": lambda a: np.repeat(a, 2, -1)[..., ::2],
    "from the third column on": lambda a: np.concatenate([a[..., :3], a], -1)[..., 3:],
}


def _operand(program: Callable[..., None], rows: int, columns: int, dtype: str) -> Any:
    shape = (3, rows, columns)[-PROGRAMS[program] :]
    values = np.random.default_rng(rows).integers(-50, 50, shape)
    return values.astype(dtype)


def _check(program: Callable[..., None], a: Any) -> None:
    shape = (*a.shape[:-2], a.shape[-1], a.shape[-2])
    got, expected = np.full(shape, -1, a.dtype), np.full(shape, -1, a.dtype)
    jk.jit(program, strict=True)(a, got)
    program(a, expected)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int16", "complex64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_transposes_are_numpys(program: Callable[..., None], dtype: str) -> None:
    for rows in EXTENTS:
        for columns in EXTENTS:
            _check(program, _operand(program, rows, columns, dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_transposes_of_other_layouts_are_numpys(program: Callable[..., None], layout: str) -> None:
    _check(program, LAYOUTS[layout](_operand(program, 35, 50, "float32")))


@pytest.mark.parametrize("rows", [16, 31])
def test_a_matrix_is_transposed_in_its_own_memory(rows: int) -> None:
    def transposed(a: Any) -> None:
        a[...] = a.T

    a = np.arange(rows * rows, dtype="float32").reshape(rows, rows)
    expected = a.T.copy()
    jk.jit(transposed, strict=True)(a)
    np.testing.assert_array_equal(a, expected)


def test_threads_share_a_transpose() -> None:
    a = np.arange(700 * 901, dtype="float32").reshape(700, 901)
    out = np.empty((901, 700), "float32")
    jk.jit(plain, strict=True)(a, out)
    np.testing.assert_array_equal(out, a.T)


def test_squares_go_through_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    known = TransposedLoads._transposed

    def noted(self: TransposedLoads, *arguments: Any) -> list[str]:
        seen.append(len(arguments))
        return known(self, *arguments)

    monkeypatch.setattr(TransposedLoads, "_transposed", noted)
    _check(of_filters, _operand(of_filters, 48, 80, "float32"))
    assert seen, "the elements were gathered"


def images_last(a: Any) -> Any:
    return np.ascontiguousarray(a.transpose(0, 2, 3, 1))


def images_first(a: Any) -> Any:
    return np.ascontiguousarray(a.transpose(0, 3, 1, 2))


def last_axes(a: Any) -> Any:
    return np.ascontiguousarray(a.transpose(0, 1, 3, 2))


def two_axes_apart(a: Any) -> Any:
    return np.ascontiguousarray(a.transpose(2, 1, 0, 3))


COPIES: dict[Callable[[Any], Any], bool] = {
    images_last: True, images_first: True, last_axes: True, two_axes_apart: False,
}  # fmt: skip
"""Whether these copies swap the last two of at most three axes, once adjacent ones are collapsed."""
IMAGES = [(1, 3, 41, 40), (2, 5, 40, 8), (1, 64, 7, 20), (3, 7, 11, 68), (1, 1, 33, 44)]
"""Batches and channels of 1 are axes that there are not: copies, or transposes of fewer axes."""


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint64", "int16", "complex64"])
@pytest.mark.parametrize("program", COPIES, ids=lambda one: one.__name__)
def test_copies_that_transpose_call_the_kernel(
    monkeypatch: pytest.MonkeyPatch, program: Callable[[Any], Any], dtype: str
) -> None:
    """With NaN payloads and signed zeros intact, as bits are moved."""
    found: list[Any] = []

    def noted(nest: Any, arrays: Any) -> Any:
        found.append(transposed_copy(nest, arrays))
        return found[-1]

    monkeypatch.setattr("jitkernels.compiler.lowering.build_segment.transposed_copy", noted)
    compiled = jk.jit(program, strict=True)
    for shape in IMAGES:
        bits = np.random.default_rng(shape[1]).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
        a = bits.view(dtype)[..., 0]
        assert compiled(a).tobytes() == program(a).tobytes()
    is_moved = COPIES[program] and np.dtype(dtype).itemsize in (4, 8) and dtype != "complex64"
    assert any(one is not None for one in found) == is_moved


@pytest.mark.parametrize("offset", [0, 1, 40, 1600])
def test_a_transpose_into_memory_that_overlaps(offset: int) -> None:
    got, expected = (np.arange(3300, dtype="float32") for _ in range(2))
    for memory, function in ((got, jk.jit(plain, strict=True)), (expected, plain)):
        function(memory[:1600].reshape(40, 40), memory[offset : offset + 1600].reshape(40, 40))
    np.testing.assert_array_equal(got, expected)
