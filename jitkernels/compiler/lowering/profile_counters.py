"""Profile counters: the time of compiled code by kernel and by the sizes of calls, with ``profile=True``."""

import ctypes
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, sleep
from typing import Any

import numpy as np

from jitkernels.compiler.codegen.core import cycle_counter, module_text
from jitkernels.compiler.codegen.core.cycle_counter import Clock
from jitkernels.runtime.loading import loader

MAX_SIZES = 16
"""Sizes of calls with counters of their own; a new one evicts the one with the fewest calls."""
SECONDS_OF_CALIBRATION = 2e-3


@dataclass
class SizeCounters:
    """Counters of the calls of one size: ticks and runs of each step. `arrays`: those of the latest call.

    `least`: for each step the ticks of the call in which it took the fewest; `seen`: the ticks of all calls but the
    running one. `memory`: arenas of former calls for the next ones, as compiled entries keep theirs: the pages of new
    memory would cost the steps that first touch them more than their work.
    """

    values: dict[str, int]
    counters: "np.ndarray[Any, np.dtype[np.int64]]"
    calls: int = 0
    arrays: Sequence[Any] = ()
    least: "np.ndarray[Any, np.dtype[np.int64]] | None" = None
    seen: "np.ndarray[Any, np.dtype[np.int64]] | None" = None
    memory: list[Any] = field(default_factory=list)

    @property
    def whole(self) -> float:
        """Seconds of all steps, counting nested ones twice."""
        return float(self.counters[:, 0].sum()) * seconds_of_tick()

    def seconds(self, step: int) -> float:
        return float(self.counters[step, 0]) * seconds_of_tick()

    def least_seconds(self, step: int) -> float:
        """Seconds of a step in the call in which it took the fewest; 0 before the first call is done."""
        return 0.0 if self.least is None else float(self.least[step]) * seconds_of_tick()

    def done(self) -> None:
        """Count a call."""
        self.calls += 1
        now = self.counters[:, 0].copy()
        if self.least is None or self.seen is None:
            self.least = now
        else:
            self.least = np.minimum(self.least, now - self.seen)
        self.seen = now


@dataclass
class Profile:
    """The timed steps of a program: nests, products, loops, branches, and nodes that NumPy computes.

    `word`: the frame slot with the address of the counters.
    """

    steps: list[Any] = field(default_factory=list)
    word: int = 0
    by_sizes: dict[tuple[int, ...], SizeCounters] = field(default_factory=dict)

    def clock(self, step: Any) -> Clock:
        """The clock of a step, which may be called in several places."""
        return Clock(self.word, self._number(step))

    def _number(self, step: Any) -> int:
        for number, known_step in enumerate(self.steps):
            if known_step is step:
                return number
        self.steps.append(step)
        return len(self.steps) - 1

    def of(self, values: Mapping[str, int]) -> SizeCounters:
        """The counters for the sizes of a call."""
        key = tuple(values.values())
        counters_of_size = self.by_sizes.get(key)
        if counters_of_size is None:
            snapshot = [*self.by_sizes.items()]  # a snapshot: other threads may call
            if len(snapshot) >= MAX_SIZES:
                self.by_sizes.pop(min(snapshot, key=lambda item: item[1].calls)[0], None)
            counters = np.zeros((max(len(self.steps), 1), 2), np.int64)
            counters_of_size = self.by_sizes.setdefault(key, SizeCounters(dict(values), counters))
        return counters_of_size

    def done(self, taken: SizeCounters, arrays: Sequence[Any], memory: Any = None) -> None:
        """Count a call and keep its arrays and the memory of its arena."""
        taken.done()
        taken.arrays = arrays
        if memory is not None:
            taken.memory.append(memory)

    def by_numpy(self, taken: SizeCounters, step: Any, seconds: float) -> None:
        """Add the time that NumPy took for a node."""
        taken.counters[self._number(step)] += (round(seconds / seconds_of_tick()), 1)


@functools.cache
def seconds_of_tick() -> float:
    """The duration of a tick of the cycle counter, measured against `perf_counter`."""
    source = module_text.module_source("clock", cycle_counter.text(cycle_counter.TICKS), 64, ())
    code = loader.load(source)
    ticks: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code.address)
    ticks(None)
    began, first = perf_counter(), ticks(None)
    sleep(SECONDS_OF_CALIBRATION)
    ended, last = perf_counter(), ticks(None)
    return (ended - began) / int(last - first)
