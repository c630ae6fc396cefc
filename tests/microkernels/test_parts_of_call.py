"""The parts of a GEMM that helpers build ahead are those that calls of its size ask for."""

import ctypes
import itertools
from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.runtime_select import parts_of_call, runtime_select_check, runtime_select_entry
from jitkernels.runtime.loading import build_ahead, lazy_link

pytestmark = pytest.mark.skipif(not cpu_target.has_compiler(), reason="llvmlite is not installed")
SIZES = (1, 2, 7, 33, 300)


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize(("trans_a", "trans_b"), [*itertools.product([False, True], repeat=2)])
def test_parts_are_those_that_the_check_reports(trans_a: bool, trans_b: bool, followed: bool) -> None:
    attr = MatMulAttr(m=1, n=1, k=1, trans_a=trans_a, trans_b=trans_b, dtype="float32")
    entry = runtime_select_entry(attr, followed=followed, in_parts=True)
    check = runtime_select_check(entry)
    kinds = [ctypes.c_void_p if "*" in kind else ctypes.c_int64 for kind in entry.arguments]
    call: Any = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(check.address())
    extents = [i for i, kind in enumerate(kinds) if kind is ctypes.c_int64][:3]
    for sizes in itertools.product(SIZES, repeat=3):
        parts = {lazy_link.later(kernel).variable for kernel in parts_of_call(entry, *sizes)}
        absent = {variable for variable in parts if not lazy_link.words_of(variable)[lazy_link.ENTRY_WORD]}
        arguments = [0] * len(kinds)
        for position, size in zip(extents, sizes, strict=True):
            arguments[position] = size
        status = call(*arguments)
        found = {one.variable for one in lazy_link.requested()}
        assert (status == lazy_link.MISSING) == bool(absent)
        assert found <= absent
        assert bool(found) == bool(absent)
        for variable in found:
            lazy_link.words_of(variable)[lazy_link.WANTED_WORD] = 0


def test_a_first_call_requests_all_parts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[bool] = []

    def noted() -> bool:
        rounds.append(original())
        return rounds[-1]

    original = build_ahead.build_requested
    monkeypatch.setattr(build_ahead, "build_requested", noted)
    x, narrow, wide = (np.ones(shape, np.float64) for shape in ((80, 90), (90, 3), (90, 300)))

    @jk.jit
    def both(x: Any, narrow: Any, wide: Any) -> Any:
        return x @ narrow, x @ wide

    first, second = both(x, narrow, wide)
    assert rounds.count(True) <= 1
    np.testing.assert_array_equal(first, np.full((80, 3), 90.0))
    np.testing.assert_array_equal(second, np.full((80, 300), 90.0))
