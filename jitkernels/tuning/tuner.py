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


def tune(attr: KernelAttr, candidates: Sequence[Candidate], *, budget: float, build_budget: float) -> Record:
    """Measure candidates, given in the static order with ``refer`` last, and order them: the pick first.

    A candidate that cannot be built or gives a wrong result is recorded with its error and never picked.
    Building stops after `build_budget` seconds; timing takes about `budget` seconds.
    """
    started = perf_counter()
    reference = candidates[-1].callable()
    expected = _results(attr, reference)
    ready: dict[str, tuple[Candidate, Callable[..., Any]]] = {}
    failed: list[Measured] = []
    complete = True
    for candidate in candidates:
        label = candidate.measured.label
        if perf_counter() - started > build_budget and candidate is not candidates[-1] and ready:
            complete = False
            continue
        try:
            function = candidate.callable()
            wrong = _first_difference(attr, expected, _results(attr, function))
        except Exception as error:  # noqa: BLE001  # whatever a third-party candidate raises disqualifies only itself
            wrong = f"{type(error).__name__}: {error}"
        if wrong is None:
            ready[label] = candidate, function
        else:
            log.warning("%s of %s(%s) is not used: %s", label, attr.kernel_type.name, attr.text(), wrong)
            failed.append(Measured(candidate.implementation, dict(candidate.variant), error=wrong))
    arrays = attr.signature().sample()
    found = measure({label: function for label, (_, function) in ready.items()}, arrays, budget=budget)
    timed = [_with_time(candidate, found[label]) for label, (candidate, _) in ready.items()]
    return Record((*ordered(timed), *failed), complete)


def ordered(timed: Sequence[Measured]) -> list[Measured]:
    """Candidates by time, except that the first of the static order within noise of the fastest comes first."""
    fastest = min(measured.seconds or 0.0 for measured in timed)
    pick = next(m for m in timed if m.seconds is not None and m.seconds <= fastest * (1 + NOISE))
    return [pick, *sorted((m for m in timed if m is not pick), key=lambda m: m.seconds or 0.0)]


def _with_time(candidate: Candidate, timing: Timing) -> Measured:
    return Measured(candidate.implementation, dict(candidate.variant), timing.seconds, timing.spread)


def _results(attr: KernelAttr, function: Callable[..., Any]) -> list[AnyArray]:
    arrays = attr.signature().sample()
    function(*arrays)
    return [
        array for array, parameter in zip(arrays, attr.signature().arrays, strict=True) if parameter.output
    ]


def _first_difference(attr: KernelAttr, expected: Sequence[AnyArray], got: Sequence[AnyArray]) -> str | None:
    tolerance = attr.tolerance()
    for parameter, right, value in zip(attr.signature().outputs, expected, got, strict=True):
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
