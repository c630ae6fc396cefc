"""Unroll-and-jam of stencils in loops: two rows at once, of any length and number, in place and strided."""

from collections.abc import Callable
from typing import Any

import numpy as np
import processor_skips
import pytest

import jitkernels as jk
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter
from jitkernels.compiler.codegen.nest.unroll_and_jam import UnrollJam
from jitkernels.core import cpu_target


def of_four(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        b[1:-1, 1:-1] = a[:-2, 1:-1] + a[2:, 1:-1] - 2 * a[1:-1, :-2] + a[1:-1, 2:]
        a[1:-1, 1:-1] = b[:-2, 1:-1] + b[2:, 1:-1] - 2 * b[1:-1, :-2] + b[1:-1, 2:]
    return a


def of_nine(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        b[1:-1, 1:-1] = (
            a[:-2, :-2] + 2 * a[:-2, 1:-1] + a[:-2, 2:] - a[1:-1, :-2] + 3 * a[1:-1, 1:-1] - a[1:-1, 2:]
            + a[2:, :-2] + 2 * a[2:, 1:-1] - a[2:, 2:]
        )  # fmt: skip
        a[:, 1:] -= b[:, :-1]
    return b


def in_place(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        a[1:, :] -= b[1:, :] - b[:-1, :]
        a[:, 3:] += b[:, 3:] - b[:, :-3] + b[:, 1:-2]
        b[:-1, :-1] += a[:-1, 1:] - a[:-1, :-1] + a[1:, :-1]
    return b


def over_what_is_read(a: Any, b: Any, steps: Any) -> Any:
    for _ in range(steps):
        a[1:, 1:] = a[:-1, 1:] + a[1:, :-1] - b[1:, 1:]
        b[:-1, :] = b[1:, :] - a[:-1, :]
        a[1:-1, 1:-1] += a[:-2, 1:-1] - a[2:, 1:-1] + a[1:-1, :-2] - a[1:-1, 2:]
    return a


PROGRAMS = (of_four, of_nine, in_place, over_what_is_read)
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.copy,
    "Fortran": np.asfortranarray,
    "every second row and column": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    "from the third column on": lambda a: np.pad(a, ((0, 0), (3, 1)))[:, 3:-1],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
}


def _arrays(rows: int, columns: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(100 * rows + columns)
    return [rng.integers(0, 3, (rows, columns)).astype(dtype) for _ in range(2)]


def _agree(compiled: Any, program: Any, arrays: list[Any], layout: Callable[[Any], Any] = np.copy) -> None:
    own, theirs = ([layout(one) for one in arrays] for _ in range(2))
    assert np.array_equal(compiled(*own, 2), program(*theirs, 2))
    for one, other in zip(own, theirs, strict=True):
        assert np.array_equal(one, other), (one.shape, layout)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_rows_of_all_lengths_and_numbers(program: Any) -> None:
    compiled = jk.jit(program, strict=True)
    for columns in (*range(4, 41), *range(46, 67)):
        for rows in (2, 3, 5, 6) if columns % 4 else (4, 7):
            _agree(compiled, program, _arrays(rows, columns, "float64"))


@pytest.mark.parametrize("dtype", ["float32", "int64", "int8"])
@pytest.mark.parametrize("program", PROGRAMS[1:3], ids=lambda program: program.__name__)
def test_other_elements(program: Any, dtype: str) -> None:
    compiled = jk.jit(program, strict=True)
    for rows, columns in ((7, 16), (6, 19), (5, 35), (4, 70), (3, 131)):
        _agree(compiled, program, _arrays(rows, columns, dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_layouts(program: Any, layout: str) -> None:
    compiled = jk.jit(program, strict=True)
    for rows, columns in ((9, 21), (12, 10)):
        _agree(compiled, program, _arrays(rows, columns, "float64"), LAYOUTS[layout])


def test_no_reads_or_writes_out_of_bounds() -> None:
    """Surrounding memory is NaN, and stays so."""
    program: Any = of_nine
    compiled = jk.jit(program, strict=True)
    for columns in (*range(10, 29), *range(49, 69)):
        for shift in range(3):
            around = [np.full((9, columns + 6), np.nan) for _ in range(2)]
            inner = [one[1:-1, shift : shift + columns] for one in around]
            for one, other in zip(inner, _arrays(7, columns, "float64"), strict=True):
                one[...] = other
            plain = [one.copy() for one in inner]
            compiled(*inner, 2)
            program(*plain, 2)
            for one, other, whole in zip(inner, plain, around, strict=True):
                assert np.array_equal(one, other)
                one[...] = np.nan
                assert np.isnan(whole).all()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_arrays_larger_than_the_first_cache(program: Any) -> None:
    """Some iterations and statements visit their rows in reverse."""
    compiled = jk.jit(program, strict=True)
    for rows, columns in ((61, 75), (84, 90)):
        for steps in (1, 2, 5):
            own, theirs = (_arrays(rows, columns, "int64") for _ in range(2))
            assert np.array_equal(compiled(*own, steps), program(*theirs, steps))
            assert all(map(np.array_equal, own, theirs))


def test_planes() -> None:
    def heat(a: Any, b: Any, steps: Any) -> Any:
        for _ in range(steps):
            for one, other in ((a, b), (b, a)):
                inner = one[1:-1, 1:-1, 1:-1]
                other[1:-1, 1:-1, 1:-1] = (
                    inner
                    + (one[2:, 1:-1, 1:-1] - 2.0 * inner + one[:-2, 1:-1, 1:-1])
                    + (one[1:-1, 2:, 1:-1] - 2.0 * inner + one[1:-1, :-2, 1:-1])
                    + (one[1:-1, 1:-1, 2:] - 2.0 * inner + one[1:-1, 1:-1, :-2])
                )
        return a

    compiled = jk.jit(heat, strict=True)
    for columns in (*range(10, 20), 26, 33, 51, 67):
        for rows in (5, 6):
            arrays = [np.random.default_rng(i).integers(0, 4, (4, rows, columns)) * 1.0 for i in range(2)]
            _agree(compiled, heat, arrays)


def _with_name(name: str) -> cpu_target.Target:
    own = cpu_target.target()
    return type(own)(**{**vars(own), "architecture": "x86_64", "name": name})


@pytest.mark.parametrize(
    ("name", "size", "is_prefetched"),
    [("emeraldrapids", 90, True), ("emeraldrapids", 30, False), ("znver4", 90, False)],
)
def test_stores_outside_the_first_cache_are_prefetched(
    name: str, size: int, is_prefetched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Intel processors, where arrays exceed the first cache; results do not change."""
    if cpu_target.target().vector_bytes < 64:
        processor_skips.skip("rows of some of the programs share nothing in narrower vectors")
    prefetches: list[str] = []
    prefetch, target = LoopEmitter.prefetch, _with_name(name)

    def noted(writer: LoopEmitter, block: Any, at: str, how: str) -> None:
        prefetches.append(how)
        prefetch(writer, block, at, how)

    monkeypatch.setattr(LoopEmitter, "prefetch", noted)
    monkeypatch.setattr(cpu_target, "target", lambda: target)
    for program in PROGRAMS:
        prefetches.clear()
        compiled = jk.jit(program, strict=True)
        _agree(compiled, program, _arrays(size, size + 3, "float64"))
        _agree(compiled, program, _arrays(size + 1, size + 7, "float64"))
        assert bool(prefetches) == is_prefetched, (program, prefetches)
        assert set(prefetches) <= {"i32 1, i32 3"}


def test_rows_with_shared_loads_are_not_collapsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are collapsed to one long row only where they are short or share no loads."""

    def of_rows(a: Any, b: Any, steps: Any) -> Any:
        for _ in range(steps):
            a[1:] -= b[1:] - b[:-1]
        return a

    def of_elements(a: Any, b: Any, steps: Any) -> Any:
        for _ in range(steps):
            a[3:] -= b[3:] * b[3:]
        return a

    found: list[Any] = []
    write = UnrollJam.jam_rows

    def noted(writer: UnrollJam, block: Any, loops: Any, *rest: Any) -> None:
        found.append(loops)
        write(writer, block, loops, *rest)

    monkeypatch.setattr(UnrollJam, "jam_rows", noted)
    for program, columns, are_rows in ((of_rows, 70, True), (of_rows, 3, False), (of_elements, 70, False)):
        found.clear()
        for dtype in ("float64", "int64"):
            for rows in (40, 41):
                _agree(jk.jit(program, strict=True), program, _arrays(rows, columns, dtype))
        assert bool(found) == are_rows, (program, columns)
