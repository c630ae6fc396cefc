"""Statistics of calls that enter through Python: counts by reason, and timings of compiled and plain calls."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

FIRST_CALLS = "the first calls of a kind, for which code is made"
ERRORS = "floating-point errors set to raise or to call a function (numpy.errstate, numpy.seterr)"
SHARED = "what is written is read-only, or shares memory with other arguments"
SMALL = "arrays for which the plain function takes less time than Python does for compiled code"
COMPARED = "calls that time compiled code and the plain function in turn, or that the latter serves faster"
OTHERS = "arguments that no compiled entry takes"
MEASURED = 3
"""Timed calls of each kind before the faster one is chosen."""
MAX_COMPARED_SECONDS, MAX_COMPARED_LOOP_SECONDS = 1e-3, 2e-4
"""Compiled calls of up to so many seconds are compared with the plain function at once. The limit is lower for
functions with loops, which Python may run a hundred times slower."""
MAX_COMPARED_LATER_SECONDS = 5e-3
"""Compiled calls of up to so many seconds are compared once many have run, which took as long as the plain function may
take in one call. Slower ones never are."""
CALLS_BEFORE, CALLS_WITH_LOOPS_BEFORE = 20, 150
"""Compiled calls after which such code is compared, without loops and with them."""
TOO_SLOW = 4
"""Slowdown against compiled code after which the plain function is not timed again."""


class PythonEntries:
    """The number of calls of a function that entered through Python, by reason."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def note(self, reason: str) -> None:
        """Count one call."""
        self.reasons[reason] += 1

    @property
    def by_frequency(self) -> tuple[tuple[str, int], ...]:
        """The reasons and their counts, the most frequent first."""
        return tuple(self.reasons.most_common())


class Timings:
    """Times of calls with arguments of one size class: compiled code entered through Python, and the plain function."""

    def __init__(self) -> None:
        self.compiled: list[float] = []
        self.plain: list[float] = []
        self._calls = 0

    def prefers_plain(self, *, has_loops: bool) -> bool:
        """Whether the next call runs the plain function: it is faster, or must be timed."""
        if not self.compiled:
            return False
        best = min(self.compiled)
        if not self.plain and self._calls_missing(has_loops=has_loops) > 0:
            return False
        if self.plain and self.plain[0] > TOO_SLOW * best:
            return False
        if not self.is_settled:
            return len(self.plain) < len(self.compiled)
        return min(self.plain) < best

    def chooses_code(self, *, has_loops: bool) -> bool | None:
        """Whether later calls run compiled code; None while calls must be timed."""
        if not self.compiled or (not self.plain and 0 < self._calls_missing(has_loops=has_loops) < np.inf):
            return None
        prefers_plain = self.prefers_plain(has_loops=has_loops)
        if not self.is_settled and (prefers_plain or len(self.plain) == len(self.compiled)):
            return None
        return not prefers_plain

    def _calls_missing(self, *, has_loops: bool) -> float:
        """The number of compiled calls that have to run before the plain function is timed."""
        best = min(self.compiled)
        if best <= (MAX_COMPARED_LOOP_SECONDS if has_loops else MAX_COMPARED_SECONDS):
            return 0
        if best > MAX_COMPARED_LATER_SECONDS:
            return np.inf
        return (CALLS_WITH_LOOPS_BEFORE if has_loops else CALLS_BEFORE) - self._calls

    @property
    def is_settled(self) -> bool:
        """Whether both kinds have enough timings."""
        return min(len(self.compiled), len(self.plain)) >= MEASURED

    def note(self, seconds: float, *, is_plain: bool) -> None:
        """Record the time of a call."""
        times = self.plain if is_plain else self.compiled
        self._calls += not is_plain
        if len(times) < MEASURED:
            times.append(seconds)


def size_class(leaves: Sequence[Any]) -> int:
    """The size class of arguments: the bit length of their number of elements."""
    return int(sum(leaf.size for leaf in leaves if type(leaf) is np.ndarray)).bit_length()
