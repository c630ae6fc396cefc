"""Ways of computing one thing that are no implementations of it, measured against each other and kept like these."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from jitkernels.attrs.base import KernelAttr
from jitkernels.explanation import Explanation, Line, explain
from jitkernels.measuring import keep, measuring_of, tune_class
from jitkernels.tuning.classes import has_elements
from jitkernels.tuning.store import Record
from jitkernels.tuning.tuner import Candidate, contest

NOISE = 0.02
"""What is taken in doubt stays unless another way takes so much less time."""
LEAST_SECONDS = 0.01
Way = dict[str, Any]


class Ways:
    """Those of one attr: `made` gives the callable of a way, `reference` is right."""

    def __init__(
        self,
        attr: KernelAttr,
        made: Callable[[Mapping[str, Any]], Callable[..., None]],
        reference: Callable[..., None],
    ) -> None:
        self.attr, self._made, self._reference = attr, made, reference
        self._record: Record | None = None
        self._started = perf_counter()

    def best(self, ways: Sequence[Way], seconds: float) -> Way:
        """The fastest of some ways that are right; the first in doubt."""
        candidates = [
            Candidate("jit", way, lambda way=way: self._made(way))  # type: ignore[misc]  # lambdas have no types
            for way in ways
        ]
        time = max(seconds / 2, LEAST_SECONDS)
        with measuring_of(self.attr):
            found = contest(self.attr, candidates, self._reference, budget=time, build_budget=time)
        right = sorted((one for one in found.candidates if one.seconds), key=lambda one: one.seconds or 0.0)
        if not right:
            return ways[0]
        first = next((one for one in right if one.variant == ways[0]), None)
        limit = (1 + NOISE) * (right[0].seconds or 0.0)
        pick = first if first is not None and (first.seconds or 0.0) <= limit else right[0]
        others = tuple(one for one in found.candidates if one is not pick)
        self._record = Record((pick, *others)).before(self._record)
        return dict(pick.variant)

    def kept(self) -> Explanation | None:
        """What was measured, once it is stored; None where no way was right."""
        if self._record is None:
            return None
        keep(self.attr, self._record, perf_counter() - self._started)
        lines = tuple(Line(one.label, None, one.seconds, one.error) for one in self._record.candidates)
        return Explanation(self.attr, lines, self._record.pick.label, {}, "measured")


def tune_for(attr: KernelAttr, seconds: float) -> Explanation | None:
    """Measure a kernel for so long, about; None where it has nothing to do."""
    if not has_elements(attr):
        return None
    time = max(seconds / 2, LEAST_SECONDS)
    tune_class(attr, budget=time, build_budget=time)
    return explain(attr)
