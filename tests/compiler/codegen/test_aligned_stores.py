"""Stores are aligned where vectors straddle cache lines: in which nests, and that no element is lost or repeated."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementation
from jitkernels.compiler.codegen.nest.aligned_stores import MIN_PEELED_VECTORS, AlignedStores
from jitkernels.core import cpu_target
from jitkernels.dispatch.kernel import Kernel

LINE = 64
LEAST = MIN_PEELED_VECTORS * cpu_target.target().lanes("float32")
AFTER = 16
"""Elements behind an output that must stay as they are."""


def at(elements: int, offset: int) -> Any:
    """An array that begins so many bytes behind the beginning of a line, among elements of -1."""
    memory = np.full(4 * (elements + AFTER) + 2 * LINE, 0, np.uint8)
    begin = -memory.ctypes.data % LINE + offset
    found = memory[begin : begin + 4 * (elements + AFTER)].view(np.float32)
    found[:] = -1
    return found


def one(x: Any, y: Any, z: Any) -> None:
    z[...] = x * y + 1


def sums(x: Any, y: Any, z: Any) -> None:
    z[:1] = x.sum()


def costly(x: Any, y: Any, z: Any) -> None:
    z[...] = np.exp(np.sin(x)) * np.cos(y)


def backwards(x: Any, y: Any, z: Any) -> None:
    z[::-1] = x * y


@pytest.mark.parametrize(("function", "is_aligned"), [(one, True), (sums, False), (costly, False), (backwards, False)])
def test_which_nests_align_their_stores(function: Any, is_aligned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that storing limits, where stores follow one another in memory."""
    found: list[Any] = []
    peeled_end = AlignedStores.peeled_end
    monkeypatch.setattr(
        AlignedStores, "peeled_end", lambda own, *rest: found.append(own) or peeled_end(own, *rest), raising=True
    )
    x, y, z = (np.ones(2 * LEAST, np.float32) for _ in range(3))
    jk.jit(function, cache=False)(x, y, z)
    wide = cpu_target.target().vector_bytes >= LINE // 2
    assert bool(found) == (is_aligned and wide)


@pytest.mark.parametrize("elements", [1, LEAST - 1, LEAST, LEAST + 1, 2 * LEAST + 7])
def test_every_element_is_stored_once(elements: int) -> None:
    """In place, at every offset, with inputs at others: an element computed twice would be added twice."""
    add = jk.jit(lambda total, x: np.add(total, x, out=total))
    for offset in range(0, LINE, 4):
        total, x = at(elements, offset), at(elements, (3 * offset + 16) % LINE)
        total[:elements], x[:elements] = np.arange(elements), 0.5
        add(total[:elements], x[:elements])
        assert np.array_equal(total[:elements], np.arange(elements, dtype=np.float32) + 0.5), offset
        assert (total[elements:] == -1).all(), offset


def test_rows_are_aligned_one_by_one() -> None:
    """Rows of a view begin at different offsets."""
    double = jk.jit(lambda x, out: np.multiply(x, 2, out=out))
    x, out = np.arange(9 * (LEAST + 5), dtype=np.float32).reshape(9, -1), np.full((9, LEAST + 9), -1, np.float32)
    double(x, out[:, 3:-1])
    assert np.array_equal(out[:, 3:-1], 2 * x)
    assert (out[:, :3] == -1).all()
    assert (out[:, -1] == -1).all()


@pytest.mark.parametrize("vector_bytes", cpu_target.target().widths)
def test_streaming_stores_begin_at_a_line(vector_bytes: int) -> None:
    """They trap elsewhere."""
    attr = jk.VMulAttr(n=3 * LEAST, dtype="float32")
    variant = {"unroll": 2 * LINE // vector_bytes, "vector_bytes": vector_bytes, "stream": True, "parallel": False}
    kernel = Kernel(attr, implementation(jk.VMulAttr, "gen"), variant)
    for offset in range(0, LINE, 4):
        x, y, z = (at(attr.n, place)[: attr.n] for place in (16, 32, offset))
        x[:], y[:] = 3, np.arange(attr.n)
        kernel.run(x, y, z)
        assert np.array_equal(z, x * y), offset
