"""Results do not depend on the alignment of arrays in memory."""

from typing import Any

import cases
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.base import FLOATS, KernelAttr
from jitkernels.attrs.schema.registry import implementation
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.dispatch.kernel import Kernel
from jitkernels.tools import testing
from jitkernels.tools.testing.data import sample

Row = Any
PLACES = (0, 1, 3, 7, 15)
"""Elements behind the beginning of a line of the cache."""
LINE = 64


def placed(array: AnyArray, elements: int) -> AnyArray:
    """A copy that begins so many elements behind the beginning of a line."""
    room = np.empty(array.nbytes + 2 * LINE + elements * array.itemsize, np.uint8)
    first = -room.ctypes.data % LINE + elements * array.itemsize
    found = room[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def places_that_matter(attr: KernelAttr, kernel: Kernel) -> list[int]:
    """Those from which it makes something else than from the first."""
    arrays = sample(attr, testing.kinds(attr)["random"])
    first = results(kernel, arrays, PLACES[0])
    return [place for place in PLACES[1:] if results(kernel, arrays, place) != first]


def results(kernel: Kernel, arrays: list[AnyArray], elements: int) -> list[bytes]:
    """What a kernel makes of arrays that begin there."""
    given = [placed(array, elements) for array in arrays]
    kernel.run(*given)
    return [array.tobytes() for array in given]


@pytest.mark.parametrize(("row", "name"), cases.every_compiled())
def test_bits_do_not_depend_on_alignment(row: Row, name: str) -> None:
    """Results of the package's own kernels have the same bits at any alignment."""
    if name in ("mkl", "openblas", "onednn"):
        return
    found = implementation(row, name)
    failures = []
    for attr in [attr for attr in testing.middles(row) if found.reason_against(attr) is None][:1]:
        kernel = Kernel(attr, found, found.variants(attr)[0])
        failures += [(attr, place) for place in places_that_matter(attr, kernel)]
    assert not failures, failures


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("row", [jk.LSTMAttr, jk.GRUAttr])
def test_unpacked_weights(row: Row, dtype: str) -> None:
    """Where weights are not packed, each row of them is read in whole cache lines."""
    for hidden in (1, 7, 16, 45, 64):
        attr = row(steps=3, batch=1, input=5, hidden=hidden, dtype=dtype)
        found = implementation(row, "gen")
        for variant in found.variants(attr):
            assert not places_that_matter(attr, Kernel(attr, found, variant)), (attr, variant)
