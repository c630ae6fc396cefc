"""Candidates measured earlier, or on a single thread, are not measured again where they cannot win."""

from typing import Any

import numpy as np
import pytest

import jitkernels as jk
from jitkernels.attrs.schema.registry import implementations
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records
from jitkernels.selection.records import Measured, Record
from jitkernels.selection.size_classes import MIN_SECONDS_FOR_THREADS
from jitkernels.tuning import tune, tuner
from jitkernels.tuning.tuner import Candidate, contest


def entrants(**candidates: dict[str, Any]) -> list[Candidate]:
    return [Candidate(name.rstrip("_"), variant, lambda: jk.get_refer) for name, variant in candidates.items()]


@pytest.mark.parametrize(("seconds", "timed"), [(0.9 * MIN_SECONDS_FOR_THREADS, False), (1e-3, True)])
def test_slow_candidates_are_not_measured_again(seconds: float, timed: bool) -> None:
    """Nor their threaded variants, wrong candidates, and threads that could not win."""
    serial, parallel = {"parallel": False}, {"parallel": True}
    offered = entrants(best=serial, best_=parallel, far=serial, far_=parallel, wrong={}, new={})
    seen = [Measured("best", serial, seconds), Measured("far", serial, 1.1 * tuner.HOPELESS_RATIO * seconds)]
    record = Record((*seen, Measured("gone", {}, 1e-9), Measured("wrong", {}, error="it is wrong")))
    left = [candidate.label for candidate in tuner.candidates_that_may_win(offered, record)]
    assert left == ["best[parallel=False]", *(["best[parallel=True]"] if timed else []), "new"]


def test_correct_candidates_are_not_checked_again() -> None:
    """The reference does not run for them; new candidates are checked."""
    attr = jk.VMulAttr(n=8)
    known = Candidate("known", {}, lambda: jk.get_refer(attr))
    wrong = Candidate("wrong", {}, lambda: lambda x, y, z: np.add(x, y, out=z))
    references: list[None] = []
    earlier = Record((Measured("known", {}, 2e-3),))
    for field in ([known], [known, wrong]):
        found = contest(attr, field, lambda *arrays: references.append(jk.get_refer(attr)(*arrays)), earlier=earlier)
        assert (found.pick.implementation, len(references)) == ("known", len(field) - 1)
    assert "the reference gives" in (found.candidates[1].error or "")


def test_records_merge_with_earlier_ones() -> None:
    now = Record((Measured("a", {}, 2.0), Measured("b", error="wrong")), complete=False)
    before = Record((Measured("c", {}, 1.0), Measured("a", {}, 1.0), Measured("d", error="wrong")))
    assert [found.label for found in now.before(before).candidates] == ["a", "c", "b", "d"]
    assert now.before(None) == now
    assert not now.before(before).complete


def test_serial_records_serve_more_threads_for_short_calls(fresh: object) -> None:
    attr = jk.VMulAttr(n=8)
    for seconds in (1e-3, 1e-7):
        alone = Record(tuple(Measured(name, {}, seconds) for name in implementations(type(attr))))
        late = seconds < MIN_SECONDS_FOR_THREADS
        assert tune.reuse_serial_record(attr, alone) == late
        assert (records.load(attr.size_class(), get_num_threads()) == alone) == late
        assert not tune.reuse_serial_record(attr, Record(alone.candidates[-1:]))
