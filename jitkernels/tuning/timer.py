"""The timer: tuner and benchmarks measure with it and nothing else.

Candidates alternate in rounds, so that an external disturbance hits all of them equally, and the minimum counts,
because everything but the code itself only adds time.

Calls of milliseconds are rarely undisturbed by other programs, never on a busy machine. Single-threaded calls are
timed by the CPU time of their thread, which equals their time on a free core. Parallel calls take as long as their
last thread, waits included, and are timed by wall-clock time.

Threads of OpenMP and OpenBLAS keep spinning for 1 to 100 ms after their work, and once asleep may take milliseconds to
wake up and find cores of their own. Parallel calls are therefore timed awake, and the next candidate waits until those
threads are asleep. `jitkernels.tuning.thread_wakeup_cost` measures the cost of threads to a user who pauses between
calls.
"""

import timeit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time, sleep, thread_time
from typing import Any

SAMPLES_PER_TURN = 16
"""Samples per turn of a candidate, so that a short disturbance spoils only some."""
THREADED_SECONDS = 2e-5
"""Calls longer than this may use threads."""
DISTURBED_SECONDS = 2e-4
"""Calls at least this long are timed by CPU time; reading that clock takes a microsecond."""
LONG_SECONDS = 2e-2
"""In a call at least this long it does not matter whether threads were awake when it began."""
THREADED_LOAD = 1.3
"""CPU seconds per wall-clock second of a call that must have used threads."""
WAKING, LONGEST_WAKING = 0.005, 0.1
"""Seconds of calls that wake threads, per attempt and in all."""


@dataclass(frozen=True)
class Timing:
    """Seconds per call: the minimum over rounds, and the spread: how far the median is above it.

    Parallel calls are timed awake; `price` is how many times more they cost a caller who pauses between calls.
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
    """Times the calls of one candidate, turn by turn, and stores the samples."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        named: Mapping[str, Any] | None = None,
        *,
        threaded: bool | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`threaded`: whether calls use threads; detected if None.

        `clock`: the clock of the timings; if None, CPU time for long single-threaded calls, wall-clock time for
        others.
        """
        values: dict[str, Any] = {f"a{i}": value for i, value in enumerate(arguments)}
        options = dict(named or {})
        listed = ", ".join([*values, *(f"{keyword}={keyword}" for keyword in options)])
        # Each argument is a local variable, so that a call costs what a user's does.
        self._timer = timeit.Timer(
            f"function({listed})", timer=lambda: self._clock(), globals={"function": function, **values, **options}
        )
        self._chooses_clock, self._clock = clock is None, clock or perf_counter
        self._number = 0
        self.samples: list[float] = []
        self.threaded = bool(threaded)
        self._unknown = threaded is None
        self._waking_limit = LONGEST_WAKING

    def call(self) -> float:
        """Seconds of one call; detects whether it used threads."""
        (seconds,) = self._times(1, 1)
        if self.threaded:  # else the next candidate would appear to use the spinning threads
            wait_until_quiet()
        return seconds

    def turn(self, seconds: float, *, warm: bool = False) -> None:
        """Call for about `seconds`, at least once. Threads are awake before and asleep again after it.

        `warm`: an untimed call precedes a single one, so that it finds its own data in the caches instead of that of
        the previous candidate.
        """
        known = min(self.samples, default=0.0)
        if self.threaded and known < LONG_SECONDS:
            self._wake()
        number = 1 if known >= seconds else self._number or self._calls_in(seconds)
        if not self.threaded:
            self._number = number  # parallel calls recount each turn: threads may lack a core now
        part = max(1, number // SAMPLES_PER_TURN)
        if warm and number == 1:
            self._timer.timeit(1)
        self.samples += self._times(min(SAMPLES_PER_TURN, number), part)
        if self.threaded:
            wait_until_quiet()

    def _times(self, parts: int, number: int) -> list[float]:
        """Seconds per call, for `parts` samples of `number` calls. Detects whether they use threads.

        Some libraries start threads of their own: the process then uses more CPU time than this thread.
        """
        known = min(self.samples, default=0.0)
        by_thread_time = self._chooses_clock and not self.threaded and number * known >= DISTURBED_SECONDS
        if self._chooses_clock:
            self._clock = thread_time if by_thread_time else perf_counter
        passed, busy, own = perf_counter(), process_time(), thread_time()
        samples = [total / number for total in self._timer.repeat(parts, number)]
        own, busy, passed = thread_time() - own, process_time() - busy, perf_counter() - passed
        if self._unknown and min(samples) > THREADED_SECONDS and busy > THREADED_LOAD * own + 1e-4:
            self.threaded = True
        if by_thread_time and self.threaded:  # newly detected: the CPU time of this thread alone is wrong
            self.samples.clear()
            return [passed / (parts * number)]
        if self._chooses_clock and not self.threaded and parts * number == 1 and samples[0] >= DISTURBED_SECONDS:
            return [own]
        return samples

    @property
    def seconds(self) -> float:
        """The shortest call so far."""
        return min(self.samples)

    @property
    def timing(self) -> Timing:
        samples = sorted(self.samples)
        return Timing(samples[0], samples[len(samples) // 2] - samples[0], self.threaded)

    def _calls_in(self, seconds: float) -> int:
        """How many calls fill `seconds`, from growing runs until the clock can resolve them."""
        number = 1
        while True:
            elapsed = self._timer.timeit(number)
            if elapsed > min(seconds, 2e-5) or number >= 1 << 20:
                return max(1, int(number * seconds / max(elapsed, 1e-9)))
            number *= 4

    def _wake(self) -> None:
        """Run without timing until threads are awake and have cores of their own: until they use more than one core.

        Where they never do, since the work is too small for two or another process has the core, later turns do not
        wait.
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
            if now - started > self._waking_limit:
                self._waking_limit = 0.0
                return


def measure(
    calls: Mapping[str, Callable[[], Any]],
    *,
    threaded: Mapping[str, bool | None] | None = None,
    budget: float = 0.2,
    rounds: tuple[int, int] = (3, 15),
    clock: Callable[[], float] = perf_counter,
    warm: bool = False,
) -> dict[str, Timing]:
    """Time calls against each other; one that is a `functools.partial` is timed without the partial's own cost.

    `threaded` declares for some whether they use threads; `warm` as in `Stopwatch.turn`. `budget` bounds the whole in
    seconds, not counting two warm-up calls each, the waking of threads, and the minimum of `rounds`, which are (fewest,
    most). By a `clock` of this thread's CPU time, single-threaded calls cost the same on a busy machine as on a free
    core.
    """
    watches = {
        name: Stopwatch(bound.func, bound.args, bound.keywords, threaded=(threaded or {}).get(name), clock=clock)
        for name, bound in ((name, partial(call)) for name, call in calls.items())
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
    seconds = {name: timing.seconds for name, timing in timed.items() if timing.threaded == threaded}
    return min(seconds, key=lambda name: seconds[name], default=None)


def wait_until_quiet(longest: float = 0.3) -> None:
    """Sleep until this process uses no CPU time while it sleeps: until threads that spin for work are asleep."""
    deadline = perf_counter() + longest
    while perf_counter() < deadline:
        used = process_time()
        sleep(0.002)
        if process_time() - used < 5e-4:
            return
