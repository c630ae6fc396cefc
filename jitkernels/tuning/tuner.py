"""The tuner: throw out what is wrong, time what is right, and let noise never overturn the static order."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from jitkernels.attrs.base import KernelAttr, Tolerance
from jitkernels.signature import AnyArray
from jitkernels.tuning.store import Measured, Record
from jitkernels.tuning.timer import Timing, measure

log = logging.getLogger("jitkernels")
NOISE = 0.06
"""A candidate earlier in the static order keeps its place unless another is faster by more than this."""


@dataclass(frozen=True)
class Candidate:
    """Something the tuner may time: where it comes from, and how to get its callable (which may fail)."""

    implementation: str
    variant: Mapping[str, Any]
    callable: Callable[[], Callable[..., Any]]

    @property
    def measured(self) -> Measured:
        return Measured(self.implementation, dict(self.variant))


def tune(
    attr: KernelAttr,
    candidates: Sequence[Candidate],
    *,
    budget: float,
    build_budget: float,
    rounds: tuple[int, int] = (3, 15),
) -> Record:
    """Measure candidates, given in the static order with ``refer`` last, and order them: the pick first.

    A candidate that cannot be built, fails, gives a wrong result or writes to an input is recorded with its
    error and never picked. Building and checking stop after `build_budget` seconds; timing takes about
    `budget` seconds, but at least the fewest and at most the most of `rounds`.
    """
    started = perf_counter()
    expected = _results(attr, candidates[-1].callable())
    ready: dict[str, tuple[Candidate, Callable[..., Any]]] = {}
    failed: list[Measured] = []
    complete = True
    for candidate in candidates:
        if perf_counter() - started > build_budget and candidate is not candidates[-1] and ready:
            complete = False
            continue
        try:
            function = candidate.callable()
            wrong = _first_difference(attr, expected, _results(attr, function))
        except Exception as error:  # noqa: BLE001  # whatever a third-party candidate raises disqualifies only itself
            wrong = _in_words(error)
        if wrong is None:
            ready[candidate.measured.label] = candidate, function
        else:
            failed.append(_disqualified(attr, candidate, wrong))
    timings = _time(attr, ready, failed, budget, rounds)
    timed = [
        _with_time(candidate, timings[label]) for label, (candidate, _) in ready.items() if label in timings
    ]
    return Record((*ordered(timed), *failed), complete)


def _time(
    attr: KernelAttr,
    ready: dict[str, tuple[Candidate, Callable[..., Any]]],
    failed: list[Measured],
    budget: float,
    rounds: tuple[int, int],
) -> dict[str, Timing]:
    """Time all against each other; if one fails now, tell which by timing each alone."""
    arrays = attr.signature().sample()
    calls = {label: function for label, (_, function) in ready.items()}
    try:
        return measure(calls, arrays, budget=budget, rounds=rounds)
    except Exception:  # noqa: BLE001  # as above: the one that raised is found below
        found: dict[str, Timing] = {}
        for label, function in calls.items():
            try:
                found |= measure({label: function}, arrays, budget=budget / len(calls), rounds=rounds)
            except Exception as error:  # noqa: BLE001  # as above
                failed.append(_disqualified(attr, ready[label][0], _in_words(error)))
        return found


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _disqualified(attr: KernelAttr, candidate: Candidate, why: str) -> Measured:
    label = candidate.measured.label
    log.warning("%s of %s(%s) is not used: %s", label, attr.kernel_type.name, attr.text(), why)
    return Measured(candidate.implementation, dict(candidate.variant), error=why)


def ordered(timed: Sequence[Measured]) -> list[Measured]:
    """Candidates by time, except that the first of the static order within noise of the fastest comes first."""
    fastest = min(measured.seconds or 0.0 for measured in timed)
    pick = next(m for m in timed if m.seconds is not None and m.seconds <= fastest * (1 + NOISE))
    return [pick, *sorted((m for m in timed if m is not pick), key=lambda m: m.seconds or 0.0)]


def _with_time(candidate: Candidate, timing: Timing) -> Measured:
    return Measured(candidate.implementation, dict(candidate.variant), timing.seconds, timing.spread)


def _results(attr: KernelAttr, function: Callable[..., Any]) -> list[AnyArray]:
    """All arrays after a call: outputs to compare, inputs to see that they were left alone."""
    arrays = attr.signature().sample()
    function(*arrays)
    return arrays


def _first_difference(attr: KernelAttr, expected: Sequence[AnyArray], got: Sequence[AnyArray]) -> str | None:
    tolerance = attr.tolerance()
    for parameter, right, value in zip(attr.signature().arrays, expected, got, strict=True):
        if not parameter.output:
            if not np.array_equal(value, right):
                return f"it wrote to {parameter.name}, which is an input"
            continue
        # Both sides may be off by the tolerance, in opposite directions.
        off = beyond(value, right, Tolerance(2 * tolerance.ulp, 2 * tolerance.absolute))
        if off.any():
            at = tuple(int(i) for i in np.argwhere(off)[0])
            return f"{parameter.name}{list(at)} is {value[at]!r}, the reference gives {right[at]!r}"
    return None


def beyond(got: AnyArray, expected: AnyArray, tolerance: Tolerance) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which elements are further from the expected value than the tolerance allows.

    A unit in the last place is the spacing of the result's dtype at the expected value; NaN agrees with
    NaN, an infinity with itself.
    """
    if got.dtype.kind != "f":
        return np.not_equal(got, expected)
    wide = np.result_type(expected.dtype, np.float64).type
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(np.abs(expected).astype(got.dtype))).astype(wide)
        unit = np.where(np.isfinite(unit), unit, np.spacing(np.finfo(got.dtype).max).astype(wide))
        distance = np.abs(got.astype(wide) - expected.astype(wide))
        fine = distance <= tolerance.ulp * unit + wide(tolerance.absolute)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    result: np.ndarray[Any, np.dtype[np.bool_]] = ~(fine | same)
    return result
