"""Compare two runs: timings that changed beyond noise, and selections that changed."""

from collections.abc import Iterator
from dataclasses import dataclass

from jitkernels.benchmarks.saved import Run
from jitkernels.benchmarks.suite import Line
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.tuning.timer import Timing

MIN_NOISE = 0.06
"""Smaller relative changes, and changes below the sum of both spreads, count as noise."""


@dataclass(frozen=True)
class Change:
    """One timing of two runs. `kind` is "faster", "slower", or "" for a change within noise."""

    group: str
    case: str
    name: str
    before: Timing
    after: Timing

    @property
    def ratio(self) -> float:
        """Return the speedup of the later run."""
        return self.before.seconds / max(self.after.seconds, 1e-12)

    @property
    def kind(self) -> str:
        distance = abs(self.before.seconds - self.after.seconds)
        noise = max(MIN_NOISE * min(self.before.seconds, self.after.seconds), self.before.spread + self.after.spread)
        if distance <= noise:
            return ""
        return "faster" if self.ratio > 1 else "slower"


def changes(before: Run, after: Run) -> Iterator[Change]:
    """Return every timing that both runs have, in the order of the later one."""
    for old, new in _pairs(before, after):
        for name, timing in new.timings.items():
            if name in old.timings:
                yield Change(new.group, new.case, name, old.timings[name], timing)


def picks_changed(before: Run, after: Run) -> list[tuple[Line, Line]]:
    """Return the lines of both runs whose selected implementation differs."""
    return [(old, new) for old, new in _pairs(before, after) if old.detail != new.detail]


def _pairs(before: Run, after: Run) -> Iterator[tuple[Line, Line]]:
    known = {(line.group, line.case): line for line in before.lines}
    for line in after.lines:
        if (line.group, line.case) in known:
            yield known[line.group, line.case], line


def summary(before: Run, after: Run) -> str:
    """Return counts and the mean change as one line; of the selections' times only, if there are selections."""
    all_changes = list(changes(before, after))
    if not all_changes:
        return "the two runs have no line in common"
    pairs = list(_pairs(before, after))
    own = [
        old.timings[old.pick].seconds / max(new.timings[new.pick].seconds, 1e-12)
        for old, new in pairs
        if old.pick in old.timings and new.pick in new.timings
    ]
    kinds = [change.kind for change in all_changes]
    same = len(pairs) - len(picks_changed(before, after))
    speed = f"; picks {geometric_mean(own):.3f} times as fast (geometric mean)" if own else ""
    return (
        f"{len(all_changes)} timings: {kinds.count('faster')} faster, {kinds.count('slower')} slower, the rest "
        f"within noise{speed}; {same} of {len(pairs)} lines have the same pick"
    )
