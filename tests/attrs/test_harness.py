"""The kernel checks: each planted mistake is caught, and a right kernel passes."""

import functools
import logging
import signal
import sys
from collections.abc import Callable
from typing import Any

import cases
import numpy as np
import pytest
from processes import python

import jitkernels as jk
from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.registry import implements
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.selection.select import choose
from jitkernels.tools import testing
from jitkernels.tuning.tune import candidates
from jitkernels.tuning.tuner import contest

PLANTED = ["wrong_value", "forgotten_tail", "changes_input", "drops_nan", "reads_late", "unchecked"]
CAUGHT_AS = {
    "wrong_value": "expected",
    "forgotten_tail": "is np.float32(nan)",
    "changes_input": "changed its input table",
    "drops_nan": "for special values",
    "reads_late": "with x as y",
    "unchecked": "accepted -1 in ids",
}


def test_correct_kernel_passes(toy: Any) -> None:
    implements(toy.ToyAttr, name="right")(toy.right)
    for attr in testing.attrs_around(toy.ToyAttr)[::7]:
        for name in ("right", "refer"):
            testing.check(attr, name)


@pytest.mark.parametrize("planted", PLANTED)
def test_planted_mistake_is_caught(toy: Any, planted: str) -> None:
    implements(toy.ToyAttr, name="planted")(toy.WRONG[planted])
    with pytest.raises(AssertionError) as caught:
        testing.check(toy.ToyAttr(n=9), "planted")
    assert CAUGHT_AS[planted] in str(caught.value)
    assert "planted" in str(caught.value)


def test_every_planted_mistake_is_tried(toy: Any) -> None:
    assert list(toy.WRONG) == PLANTED == list(CAUGHT_AS)


@pytest.mark.skipif(sys.platform == "win32", reason="no mprotect: the pattern alone tells")
@pytest.mark.parametrize("planted", ["one_too_many", "one_too_early", "reads_beyond"])
@pytest.mark.parametrize("side", ["start", "end"])
def test_out_of_bounds_accesses_are_caught(planted: str, side: str) -> None:
    """On the guarded side the process dies of it; on the other side a write is detected afterwards."""
    code = f"""
import toy, jitkernels
toy.register()
from jitkernels.tools import testing
from jitkernels.dispatch.kernel import Kernel
from jitkernels.attrs.schema.registry import implementation, implements
implements(toy.ToyAttr, name="planted")(toy.OUTSIDE[{planted!r}])
attr = toy.ToyAttr(n=9)
kernel = Kernel(attr, implementation(toy.ToyAttr, "planted"), {{}})
guards = [testing.Guarded(array, {side!r}) for array in attr.signature().sample()]
kernel.callable(*[guard.array for guard in guards])
print([guard.intact() for guard in guards])
"""
    dies = (planted == "one_too_early") == (side == "start")
    printed = python(code, status=-signal.SIGSEGV if dies else 0)
    if not dies:
        assert printed.strip() == str([True, True, True, planted == "reads_beyond"])


def test_untouched_guards_are_intact() -> None:
    for side in ("start", "end"):
        for size in (0, 1, 7, 1024, 5000):
            array = np.arange(size, dtype=np.float32)
            guard = testing.Guarded(array, side)
            assert guard.intact()
            assert guard.array.flags.aligned
            assert np.array_equal(guard.array, array)


def test_returned_value_is_caught(toy: Any) -> None:
    with pytest.raises(AssertionError, match="instead of None"):
        testing.check_values(toy.ToyAttr(n=3), lambda *arrays: toy.refer(toy.ToyAttr(n=3), *arrays) or 1)


def test_writing_before_refusing_is_caught(toy: Any) -> None:
    attr = toy.ToyAttr(n=3)

    def late(*arrays: Any) -> None:
        arrays[3][...] = 0
        attr.check_data(arrays)

    with pytest.raises(AssertionError, match="wrote before it rejected"):
        testing.check_bad_indices(attr, late)


def test_checks_without_test_data_fail(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check fails where it has no element to compare, nothing to reject and no memory to share."""
    attr = toy.ToyAttr(n=3)
    right = functools.partial(toy.refer, attr)
    assert testing.check_special_values(attr, right)
    assert testing.check_aliased_arguments(attr, right) == 1
    assert testing.check_bad_indices(toy.ToyAttr(n=3), _checked(attr, right)) > 0
    with monkeypatch.context() as patched:
        patched.setattr(error_bounds, "allowed", lambda attr, arrays, true, slack: [np.full(4, np.inf)])
        patched.setattr(testing.data, "special_values", lambda dtype: np.ones(30, dtype))
        other = toy.ToyAttr(n=4)  # of which no truth is remembered
        with pytest.raises(AssertionError, match="no special values were compared"):
            testing.check_special_values(other, functools.partial(toy.refer, other))
    with monkeypatch.context() as patched:
        patched.setattr(toy.ToyAttr, "check_data", lambda self, arrays: None)
        with pytest.raises(AssertionError, match="rejects nothing in ids"):
            testing.check_bad_indices(attr, right)
    with pytest.raises(AssertionError, match="nothing was tried"):
        cases.Failures().tell()


def _checked(attr: Any, function: Callable[..., None]) -> Callable[..., None]:
    def call(*arrays: Any) -> None:
        attr.check_data(arrays)
        function(*arrays)

    return call


def test_failures_are_reported_together() -> None:
    failures = cases.Failures()
    for number in range(3):
        with failures.gathered(f"case {number}"):
            assert number == 1, "is not one"
    with pytest.raises(AssertionError, match=r"2 of 3 cases fail\ncase 0 is not one.*\ncase 2 is not one"):
        failures.tell()


@pytest.mark.parametrize("row", cases.every_row())
def test_kinds_of_data_are_valid_and_reproducible(row: Any) -> None:
    """Each kind fits the arguments and is the same for the same seed; every position is the peak in turn."""
    for attr in testing.middles(row):
        kinds = testing.kinds(attr)
        signature = attr.signature()
        for name, fill in kinds.items():
            arrays = testing.data.sample(attr, fill)
            for array, again, p in zip(arrays, testing.data.sample(attr, fill), signature.arrays, strict=True):
                assert (array.shape, array.dtype) == (p.shape, p.numpy), name
                assert array.tobytes() == again.tobytes(), name
            attr.check_data(arrays)
        shape = signature.arrays[0].shape
        for place in (0, shape[-1] // 2, shape[-1] - 1) if signature.inputs else ():
            assert any(kind.endswith(f"at {place} of axis -1") for kind in kinds)


@pytest.mark.parametrize("planted", ["wrong_value", "forgotten_tail"])
def test_tuner_never_picks_a_wrong_kernel(toy: Any, planted: str, caplog: pytest.LogCaptureFixture) -> None:
    """However fast it is: the record has its error, the pick is another, and one warning says so."""
    attr = toy.ToyAttr(n=9)
    implements(toy.ToyAttr, name="planted")(toy.WRONG[planted])
    with caplog.at_level(logging.WARNING, "jitkernels"):
        record = contest(attr, candidates(attr), jk.get_refer(attr), budget=0.01, build_budget=30)
    assert record.pick.implementation == "refer"
    (wrong,) = (measured for measured in record.candidates if measured.implementation == "planted")
    assert wrong.seconds is None
    assert wrong.error is not None
    assert "planted of TOY_TAKE" in caplog.text


def test_tuner_survives_errors_of_candidates(toy: Any, fresh: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate that cannot be built is disqualified; the others are measured and one of them is used."""

    def broken(attr: Any) -> Any:
        raise RuntimeError("no such thing")

    implements(toy.ToyAttr, name="broken")(broken)
    implements(toy.ToyAttr, name="right")(toy.right)
    monkeypatch.setenv("JITKERNELS_TUNE", "auto")
    attr = toy.ToyAttr(n=9)
    jk.tune(attr)
    kernel: Any = KernelFuncs.cache().at(attr)
    assert kernel.__self__.implementation in ("right", "refer")
    record = choose(attr).record
    assert record is not None
    errors = {measured.implementation: measured.error for measured in record.candidates}
    assert errors["broken"] == "RuntimeError: no such thing"
