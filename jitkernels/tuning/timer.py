"""The one timer: tuner and benchmarks measure with it and nothing else.

Candidates take turns in rounds, so that a disturbance from outside hits them all alike, and the minimum
counts, because whatever is not the code itself only ever adds time.

Calls of milliseconds are seldom left alone by other programs, all of them where a machine is busy. On one thread
they are timed by the processor time of that thread, which is what they take where nobody else wants the core. What
uses threads takes as long as its last one, waits included, and is timed by the wall.

Threads of OpenMP and OpenBLAS go on spinning for 1 to 100 ms after their work, and may take milliseconds to
come back and find cores of their own once they sleep. What uses threads is therefore timed awake, and whoever
comes next waits until those threads are asleep. What threads cost a user who pauses between calls is measured
in `jitkernels.tuning.pauses`.
"""

import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time, sleep, thread_time
from typing import Any

PARTS = 16
"""Parts that a candidate's turn in a round is timed in, so that a short disturbance spoils only some."""
THREADED_SECONDS = 2e-5
"""Calls longer than this may use threads."""
DISTURBED_SECONDS = 2e-4
"""What takes as long is timed by processor time, to read which takes a microsecond."""
LONG_SECONDS = 2e-2
"""In a call of so long it does not matter whether threads were awake when it began."""
THREADED_LOAD = 1.3
"""Processor seconds per second of a call that must have used threads."""
WAKING, LONGEST_WAKING = 0.005, 0.1
"""Seconds that threads are given to wake up, again and again, and in all."""


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the minimum over rounds, and the spread: how far the median lies above it.

    Calls that use threads are timed awake; `price` is how many times more they cost who pauses between calls.
    """

    seconds: float
    spread: float
    threaded: bool = False
    price: float = 1.0

    @property
    def used(self) -> float:
        """Seconds per call as a user sees them."""
        return self.seconds * self.price


class Stopwatch:
    """The calls of one candidate: takes a turn whenever asked to, and keeps what it saw."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        named: Mapping[str, Any] | None = None,
        *,
        threaded: bool | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`threaded` says whether calls use threads; if None, it is found out.

        `clock`: what calls are timed by; if None, long ones on one thread by its processor time, others by the wall.
        """
        values: dict[str, Any] = {f"a{i}": value for i, value in enumerate(arguments)}
        options = dict(named or {})
        listed = ", ".join([*values, *(f"{keyword}={keyword}" for keyword in options)])
        # Each argument is a local variable, so that a call costs what a user's does.
        self._timer = timeit.Timer(
            f"function({listed})",
            timer=lambda: self._clock(),
            globals={"function": function, **values, **options},
        )
        self._chooses, self._clock = clock is None, clock or perf_counter
        self._number = 0
        self.samples: list[float] = []
        self.threaded = bool(threaded)
        self._unknown = threaded is None
        self._patience = LONGEST_WAKING

    def call(self) -> float:
        """Seconds of one call; whether it used threads is noted."""
        (taken,) = self._times(1, 1)
        if self.threaded:  # whoever comes next would be taken for the one who keeps them busy
            wait_until_quiet()
        return taken

    def turn(self, seconds: float, *, warm: bool = False) -> None:
        """Call for about so long, at least once. Threads are woken before and asleep again after it.

        `warm`: where that is a single call, another one goes before it, so that it finds its own data in the caches
        and not those of who had its turn before.
        """
        known = min(self.samples, default=0.0)
        if self.threaded and known < LONG_SECONDS:
            self._wake()
        number = 1 if known >= seconds else self._number or self._calls_in(seconds)
        if not self.threaded:
            self._number = number  # else again in each turn: threads may have found no core this time
        part = max(1, number // PARTS)
        if warm and number == 1:
            self._timer.timeit(1)
        self.samples += self._times(min(PARTS, number), part)
        if self.threaded:
            wait_until_quiet()

    def _times(self, parts: int, number: int) -> list[float]:
        """Seconds per call, of so many calls in each part. Whether they use threads is noted.

        Some libraries start threads of their own: more processor time than that of this thread tells.
        """
        known = min(self.samples, default=0.0)
        by_own = self._chooses and not self.threaded and number * known >= DISTURBED_SECONDS
        if self._chooses:
            self._clock = thread_time if by_own else perf_counter
        passed, busy, own = perf_counter(), process_time(), thread_time()
        found = [taken / number for taken in self._timer.repeat(parts, number)]
        own, busy, passed = thread_time() - own, process_time() - busy, perf_counter() - passed
        if self._unknown and min(found) > THREADED_SECONDS and busy > THREADED_LOAD * own + 1e-4:
            self.threaded = True
        if by_own and self.threaded:  # which nobody knew: what this thread took is not what calls take
            self.samples.clear()
            return [passed / (parts * number)]
        if self._chooses and not self.threaded and parts * number == 1 and found[0] >= DISTURBED_SECONDS:
            return [own]
        return found

    @property
    def seconds(self) -> float:
        """The shortest call so far."""
        return min(self.samples)

    @property
    def timing(self) -> Timing:
        found = sorted(self.samples)
        return Timing(found[0], found[len(found) // 2] - found[0], self.threaded)

    def _calls_in(self, seconds: float) -> int:
        """How many calls fill that time, from runs that grow until the clock can read them."""
        number = 1
        while True:
            taken = self._timer.timeit(number)
            if taken > min(seconds, 2e-5) or number >= 1 << 20:
                return max(1, int(number * seconds / max(taken, 1e-9)))
            number *= 4

    def _wake(self) -> None:
        """Run without timing until threads are awake and have cores of their own: they get more than one core does.

        Where they never do, since the work is too little for two or another process has the core, nobody waits again.
        """
        started = perf_counter()
        while True:
            busy, began = process_time(), perf_counter()
            calls = 0
            while calls < 4 or perf_counter() - began < WAKING:
                self._timer.timeit(1)
                calls += 1
            now = perf_counter()
            if process_time() - busy > THREADED_LOAD * (now - began):
                return
            if now - started > self._patience:
                self._patience = 0.0
                return


def measure(
    calls: Mapping[str, Callable[..., Any]],
    arguments: Mapping[str, Sequence[Any]] | Sequence[Any],
    *,
    named: Mapping[str, Mapping[str, Any]] | None = None,
    threaded: Mapping[str, bool | None] | None = None,
    budget: float = 0.2,
    rounds: tuple[int, int] = (3, 15),
    clock: Callable[[], float] = perf_counter,
    warm: bool = False,
) -> dict[str, Timing]:
    """Time callables against each other.

    `arguments` is what each is called with, or that by name of the callable; `named` are keyword arguments
    by name of the callable; `threaded` says of some whether they use threads; `warm` as in `Stopwatch.turn`.
    `budget` bounds the whole in seconds, beyond two warm-up calls each, the waking of threads, and the fewest of
    `rounds`, which are (fewest, most). By a `clock` of this thread's processor time, calls on one thread cost what
    they do where no other program wants the core.
    """
    watches = {
        name: Stopwatch(
            function,
            arguments[name] if isinstance(arguments, Mapping) else arguments,
            (named or {}).get(name),
            threaded=(threaded or {}).get(name),
            clock=clock,
        )
        for name, function in calls.items()
    }
    for watch in watches.values():
        watch.call()
        watch.call()
    wait_until_quiet()
    fewest, most = rounds
    share = budget / max(len(calls), 1) / (most + 1)
    started = perf_counter()
    for done in range(most):
        if done >= fewest and perf_counter() - started > budget:
            break
        for watch in watches.values():
            watch.turn(share, warm=warm)
    return {name: watch.timing for name, watch in watches.items()}


def fastest(timed: Mapping[str, Stopwatch] | Mapping[str, Timing], threaded: bool) -> str | None:
    """The name of the fastest of those that use threads, or of those that do not; None if there is none."""
    seconds = {name: found.seconds for name, found in timed.items() if found.threaded == threaded}
    return min(seconds, key=lambda name: seconds[name], default=None)


def wait_until_quiet(longest: float = 0.3) -> None:
    """Sleep until this process uses no processor time while it sleeps, as threads do that wait for work."""
    deadline = perf_counter() + longest
    while perf_counter() < deadline:
        used = process_time()
        sleep(0.002)
        if process_time() - used < 5e-4:
            return
