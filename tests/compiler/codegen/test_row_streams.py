"""Products with unaligned rows: matrices are read in whole cache lines, and vectors as vectors."""

from typing import Any

import numpy as np
import processor_skips
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.core import aligned_loads
from jitkernels.compiler.dispatch import specialization
from jitkernels.compiler.schedule.nest import vector_runs
from jitkernels.core import cpu_target
from jitkernels.tools.testing import guard_pages

LINE = 64
pytestmark = processor_skips.needs(
    cpu_target.target().is_x86 and cpu_target.target().vector_bytes == LINE, "it has no AVX-512"
)


@pytest.fixture(autouse=True)
def compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS_OF_PYTHON", "SECONDS_OF_RESULT"):
        monkeypatch.setattr(specialization, name, 0.0)


def beyond_line(array: Any, elements: int) -> Any:
    """A copy that begins so many elements behind the beginning of a line."""
    memory = np.full(array.nbytes + 2 * LINE, 0xFF, np.uint8)  # NaN around it
    begin = -memory.ctypes.data % LINE + elements * array.itemsize
    found = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def product(x: Any, w: Any) -> Any:
    return np.maximum(x @ w + 1, 0)


def several(x: Any, w: Any) -> Any:
    return (x[0, :, None] * w + w[:, ::-1] * 2).sum(axis=0), (x.T * w).max(axis=0)


def shifted(x: Any, w: Any) -> Any:
    return (x[0, :-1, None] * w[1:, :-2] * w[:-1, 2:] - x[0, 1:, None]).sum(axis=0)


def picked(x: Any, w: Any) -> Any:
    numbers = np.arange(w.shape[0])[::-1]
    return (x[0, :, None] * w * w[numbers]).sum(axis=0), (x[0, :, None] * w * x[0, numbers, None]).sum(axis=0)


PROGRAMS = (product, several, shifted, picked)


def given(rows: int, columns: int, dtype: str) -> Any:
    random = np.random.default_rng(rows + columns)
    return tuple((random.standard_normal(shape) * 8).astype(dtype) for shape in ((1, rows), (rows, columns)))


def agrees(program: Any, compiled: Any, x: Any, w: Any) -> None:
    found, expected = compiled(x, w), program(x, w)
    for got, right in zip(*(one if isinstance(one, tuple) else (one,) for one in (found, expected)), strict=True):
        tolerance = 1e-3 if x.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_unaligned_rows(program: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_runs, "NOT_NEAR", 0)
    compiled = jk.jit(program)
    for rows, columns in ((64, 128), (33, 128), (16, 256), (300, 160), (21, 144), (40, 127)):
        x, w = given(rows, columns, dtype)
        for elements in range(0, LINE // w.itemsize, 1 if columns == 128 else 5):
            agrees(program, compiled, x, beyond_line(w, elements))


@pytest.mark.parametrize("side", ["start", "end"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_accesses_out_of_bounds(side: guard_pages.Side, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard pages lie next to the matrix and the vector, or a few elements away."""
    monkeypatch.setattr(vector_runs, "NOT_NEAR", 0)
    compiled = jk.jit(product)
    for rows, columns in ((48, 128), (31, 128), (17, 256), (5, 160)):
        x, w = given(rows, columns, dtype)
        for apart in (0, 1, 3, 4):
            around = guard_pages.Guarded(x, side), guard_pages.Guarded(w, side, apart=apart)
            agrees(product, compiled, *(one.array for one in around))
            assert all(one.intact() for one in around)
    # Rows of a wider matrix: some elements before its end or behind its beginning, whole lines apart.
    x, w = given(32, 192, dtype)
    whole = guard_pages.Guarded(w, side).array
    agrees(product, compiled, x, whole[:, 60:188] if side == "end" else whole[:, 4:132])


def test_which_matrices_are_read_by_cache_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that the first cache does not hold; the code for others stays the same."""
    seen: list[str] = []
    plain = aligned_loads.load_lines

    def noted(*args: Any) -> str:
        seen.append("lines")
        return plain(*args)

    monkeypatch.setattr(aligned_loads, "load_lines", noted)
    for side, is_read in ((64, False), (128, True), (32, False)):
        seen.clear()
        x, w = given(side, side, "float32")
        agrees(product, jk.jit(product), x, w)
        assert bool(seen) == is_read, side


def test_vectors_are_not_read_beyond_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of any number beside constants, with NaN or a guard page behind them."""
    seen: list[str] = []
    plain = aligned_loads.next_element

    def noted(*args: Any) -> str:
        seen.append("held")
        return plain(*args)

    monkeypatch.setattr(aligned_loads, "next_element", noted)
    for program in PROGRAMS:
        for dtype in ("float32", "float64", "int32"):
            for rows in (128, 133, 256, 300):
                x, w = given(rows, 128, dtype)
                seen.clear()
                compiled = jk.jit(program, static_argnames="w")
                agrees(program, compiled, beyond_line(x, 3), w)
                assert seen or program is not product or dtype != "int32"  # packed panels take floats
                guarded = guard_pages.Guarded(x, "end")
                agrees(program, compiled, guarded.array, w)
                assert guarded.intact()
