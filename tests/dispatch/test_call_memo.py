"""Repeated calls of everyday functions without a dispatch table: remembered, and the same as the first one."""

from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.schema_queries import is_everyday
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.dispatch import call_memo
from jitkernels.dispatch.operators import _holder
from jitkernels.errors import JitKernelsError

Schema = type[jk.KernelAttr]


def remembers(param: Any) -> bool:
    row = param.values[0]
    return is_everyday(row) and _holder(row.kernel_type.name.lower())._memo is not None


ROWS = [
    param
    for param in cases.every_row()
    if remembers(param) and len([one for one in param.values[0].arrays if one.role == "out"]) == 1
]
"""Calls with several results are not remembered."""


def test_convolutions_are_remembered() -> None:
    assert {"CONV2D", "MAX_POOL2D"} <= {param.values[0].kernel_type.name for param in ROWS}


@pytest.mark.parametrize("row", ROWS)
def test_calls_give_the_same_again(row: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    function, hits = getattr(jk, row.kernel_type.name.lower()), []
    plain: Callable[..., Any] = call_memo.CallMemo.call

    def counted(memo: Any, arguments: Any, named: Any) -> Any:
        known = plain(memo, arguments, named)
        hits.append(known is not None)
        return known

    monkeypatch.setattr(call_memo.CallMemo, "call", counted)
    with np.errstate(all="ignore"):
        for call, other in zip(ordinary_calls_of(row, 40), ordinary_calls_of(row, 40), strict=True):
            first = np.array(function(*call.arguments, **call.named))
            again = function(*other.arguments, **other.named)
            assert np.asarray(again).tobytes() == first.tobytes(), call.form
            out = other.named.get("out")
            assert out is None or again is out
    assert sum(hits) > 4


def arrays() -> tuple[AnyArray, AnyArray]:
    random = np.random.default_rng(0)
    return random.standard_normal((2, 9, 8, 5)), random.standard_normal((3, 3, 5, 5))


def test_other_calls_after_a_remembered_one() -> None:
    """Other types, shapes, layouts, ``out`` that overlaps, and NaN in place of what was there."""
    x, w = arrays()
    jk.conv2d(x, w, None, None, 1, 1)
    with pytest.raises(JitKernelsError, match="stride: expected an int"):
        jk.conv2d(x, w, None, None, True, 1)
    with pytest.raises(JitKernelsError, match="stride: expected an int"):
        jk.conv2d(x, w, None, None, 1.0, 1)
    assert jk.conv2d(x[:1], w, None, None, 1, 1).shape == (1, 9, 8, 5)
    swapped = jk.conv2d(np.ascontiguousarray(x[:, :, ::-1])[:, :, ::-1], w, None, None, 1, 1)
    expected = jk.conv2d(x, w, None, None, 1, 1)
    assert np.allclose(swapped, expected)
    x[0, 0, 0, 0] = np.nan
    assert np.isnan(jk.conv2d(x, w, None, None, 1, 1)[0, 0, 0]).all()
    x[0, 0, 0, 0] = 1
    expected = jk.conv2d(x, w, stride=1, padding=1)
    assert jk.conv2d(x, w, stride=1, padding=1, out=x) is x
    assert np.allclose(x, expected)


def test_one_array_for_two_inputs_is_no_pattern_for_two_arrays() -> None:
    x, dy = np.random.default_rng(0).standard_normal((2, 1, 4, 4, 3))
    for _ in range(2):
        assert np.array_equal(jk.max_pool2d_backward(x, x, 1), x)
    assert np.array_equal(jk.max_pool2d_backward(x, dy, 1), dy)
    w = np.eye(3).reshape(1, 1, 3, 3)
    for _ in range(2):
        assert np.array_equal(jk.conv2d(x, w, None, x), 2 * x)
    assert np.array_equal(jk.conv2d(x, w, None, dy), x + dy)


def test_read_only_and_short_results_are_refused() -> None:
    x, w = arrays()
    out = np.zeros((2, 9, 8, 5))
    for _ in range(2):
        jk.conv2d(x, w, padding=1, out=out)
    out.flags.writeable = False
    with pytest.raises(JitKernelsError, match="out"):
        jk.conv2d(x, w, padding=1, out=out)
    with pytest.raises(JitKernelsError, match="out"):
        jk.conv2d(x, w, padding=1, out=np.zeros((2, 9, 8, 4)))


def test_an_override_holds_for_remembered_calls() -> None:
    x, w = arrays()
    fast = jk.conv2d(x, w, padding=1)
    with jk.use("refer"):
        slow = jk.conv2d(x, w, padding=1)
    assert np.allclose(fast, slow)
    assert fast.tobytes() == jk.conv2d(x, w, padding=1).tobytes()


def test_no_more_calls_are_kept_than_the_limit() -> None:
    w = np.ones((1, 1, 1, 1))
    memo = _holder("conv2d")._memo
    assert memo is not None
    for height in range(1, call_memo.MAX_CALLS + 20):
        jk.conv2d(np.ones((1, height, 1, 1)), w)
    assert 0 < len(memo._calls) <= call_memo.MAX_CALLS
