"""Transposes: squares of elements go through registers, the rest is gathered, for all extents, dtypes and layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.nest.transposed_loads import TransposedLoads

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
@pytest.mark.per_push(12)
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
    _check(plain, _operand(plain, 48, 80, "float32"))
    assert seen, "the elements were gathered"
