"""Tune execution plans that are not implementations of a schema, and store their measurements in the same records."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.selection.explain_selection import CandidateLine, Explanation, explain
from jitkernels.selection.records import Record
from jitkernels.selection.size_classes import has_elements
from jitkernels.tuning.tune import exclusive_measurement, keep, tune_class
from jitkernels.tuning.tuner import Candidate, contest

MIN_PLAN_GAIN = 0.02
"""The default plan stays unless another one is faster by more than this fraction."""
MIN_SECONDS = 0.01
Plan = dict[str, Any]


class Plans:
    """The plans of one attr: `made` builds the callable of a plan, `reference` is the trusted one."""

    def __init__(
        self,
        attr: KernelAttr,
        build: Callable[[Mapping[str, Any]], Callable[..., None]],
        reference: Callable[..., None],
    ) -> None:
        self.attr, self._build, self._reference = attr, build, reference
        self._record: Record | None = None
        self._started = perf_counter()

    def best(self, plans: Sequence[Plan], seconds: float) -> Plan:
        """The fastest correct plan; the first one within noise."""
        candidates = [
            Candidate("jit", plan, lambda plan=plan: self._build(plan))  # type: ignore[misc]  # lambdas have no types
            for plan in plans
        ]
        time = max(seconds / 2, MIN_SECONDS)
        with exclusive_measurement(self.attr):
            record = contest(self.attr, candidates, self._reference, budget=time, build_budget=time)
        correct = sorted(
            (candidate for candidate in record.candidates if candidate.seconds),
            key=lambda candidate: candidate.seconds or 0.0,
        )
        if not correct:
            return plans[0]
        default = next((candidate for candidate in correct if candidate.variant == plans[0]), None)
        limit = (1 + MIN_PLAN_GAIN) * (correct[0].seconds or 0.0)
        pick = default if default is not None and (default.seconds or 0.0) <= limit else correct[0]
        others = tuple(candidate for candidate in record.candidates if candidate is not pick)
        self._record = Record((pick, *others)).before(self._record)
        return dict(pick.variant)

    def kept(self) -> Explanation | None:
        """Store the measurements and return them; None where no plan was correct."""
        if self._record is None:
            return None
        keep(self.attr, self._record, perf_counter() - self._started)
        lines = tuple(
            CandidateLine(candidate.label, None, candidate.seconds, candidate.error)
            for candidate in self._record.candidates
        )
        return Explanation(self.attr, lines, self._record.pick.label, {}, "measured")


def tune_for(attr: KernelAttr, seconds: float) -> Explanation | None:
    """Tune a kernel for about `seconds`; None where it has nothing to do."""
    if not has_elements(attr):
        return None
    time = max(seconds / 2, MIN_SECONDS)
    tune_class(attr, budget=time, build_budget=time)
    return explain(attr)
