"""What compiled code takes, kernel by kernel and by the sizes of calls, where it was asked to count that."""

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any

import numpy as np

from jitkernels.graph.emit import clock, programs
from jitkernels.graph.emit.clock import Clock
from jitkernels.native import load

MOST_SIZES = 16
"""Sizes of calls that are told apart; then the one with the fewest calls makes room."""
SECONDS_OF_CALIBRATION = 2e-3


@dataclass
class Taken:
    """What calls of some sizes took: for each part its ticks, and how often it ran. `arrays` are the latest call's."""

    values: dict[str, int]
    counters: "np.ndarray[Any, np.dtype[np.int64]]"
    calls: int = 0
    arrays: Sequence[Any] = ()

    @property
    def whole(self) -> float:
        """Seconds of all parts, those inside of others counted twice."""
        return float(self.counters[:, 0].sum()) * seconds_of_tick()

    def seconds(self, part: int) -> float:
        return float(self.counters[part, 0]) * seconds_of_tick()


@dataclass
class Profile:
    """The parts of one program that are timed: nests, products, loops and branches, and nodes that NumPy computes.

    `word`: where the frame has the address of the counters.
    """

    parts: list[Any] = field(default_factory=list)
    word: int = 0
    by_sizes: dict[tuple[int, ...], Taken] = field(default_factory=dict)

    def clock(self, part: Any) -> Clock:
        """One for a part, which may be called at several places."""
        return Clock(self.word, self._number(part))

    def _number(self, part: Any) -> int:
        for number, one in enumerate(self.parts):
            if one is part:
                return number
        self.parts.append(part)
        return len(self.parts) - 1

    def of(self, values: Mapping[str, int]) -> Taken:
        """What a call of some sizes adds to."""
        key = tuple(values.values())
        found = self.by_sizes.get(key)
        if found is None:
            known = [*self.by_sizes.items()]  # at once: other threads call, too
            if len(known) >= MOST_SIZES:
                self.by_sizes.pop(min(known, key=lambda one: one[1].calls)[0], None)
            counters = np.zeros((max(len(self.parts), 1), 2), np.int64)
            found = self.by_sizes.setdefault(key, Taken(dict(values), counters))
        return found

    def done(self, taken: Taken, arrays: Sequence[Any]) -> None:
        """Count a call, and keep what it was given."""
        taken.calls += 1
        taken.arrays = arrays

    def by_numpy(self, taken: Taken, part: Any, seconds: float) -> None:
        """Add what NumPy took for a node."""
        taken.counters[self._number(part)] += (round(seconds / seconds_of_tick()), 1)


@functools.cache
def seconds_of_tick() -> float:
    """What the counter counts, by the clock that everything else is timed by."""
    source = programs.fused("clock", clock.text(clock.TICKS), 64, ())
    code = load.placed_of(source)
    ticks: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.address)
    ticks(None)
    began, first = perf_counter(), ticks(None)
    sleep(SECONDS_OF_CALIBRATION)
    ended, last = perf_counter(), ticks(None)
    return (ended - began) / int(last - first)
