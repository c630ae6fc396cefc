"""The tuner: reject wrong candidates, drop slow ones after one call, and let noise never change the order.

Parallel candidates must win by a clear margin: they cost another core, and their calls have long tails.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from jitkernels.attrs.schema import error_bounds
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import signal_exceptions
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.selection.records import Measured, Record
from jitkernels.selection.size_classes import MIN_SECONDS_FOR_THREADS, OUTER_BYTES, nbytes
from jitkernels.tuning.check_result import first_difference
from jitkernels.tuning.thread_wakeup_cost import thread_wakeup_price
from jitkernels.tuning.timer import Stopwatch, fastest

log = logging.getLogger("jitkernels")
MIN_RANK_GAIN = 0.04
"""A candidate earlier in the static order keeps its rank unless another is faster by more than this.

That does not apply where arrays are in the outer caches: all run at the speed of memory there, except those that need
less of it.
"""
THREADS_MARGIN = 1.25
"""Parallel candidates win only by this factor."""
STREAM_MARGIN = 1.08
"""So do streaming stores: the consumer of the result finds it in no cache, and smaller calls of the class may lose."""
CONTEST_SECONDS = 0.04
"""Seconds of timing that separate the candidates of most attrs."""
HOPELESS = 4.0
"""A candidate whose first call takes this many times the best one's is not called again."""
SLOW = (2.0, 1.5, 1.25, 1.25, 1.12)
"""After each round, candidates beyond this many times the best drop out; the last factor applies to all further ones.
"""
ROUNDS = (2, 4, 16)
"""Fewest rounds where they take many times the budget, fewest otherwise, and most rounds."""
HOPELESS_RATIO = 1.5
"""A candidate that took this many times the best time in an earlier record, or on one thread, is not measured again."""
MAX_RETIMED_SECONDS, MIN_RETIMED_SECONDS = 2e-2, 1e-3
"""A first call may be slow by chance: if it took less than the first, a second one is timed, and if it took less than
the second, it is ignored."""


@dataclass(frozen=True)
class Candidate:
    """Something the tuner can time: its implementation and variant, and a function that builds its callable."""

    implementation: str
    variant: Mapping[str, Any]
    callable: Callable[[], Callable[..., Any]]

    @property
    def measured(self) -> Measured:
        return Measured(self.implementation, dict(self.variant))

    @property
    def label(self) -> str:
        return self.measured.label

    @property
    def label_alone(self) -> str:
        """The label of the serial variant."""
        return Measured(self.implementation, {**self.variant, "parallel": False}).label


def candidates_that_may_win(candidates: Sequence[Candidate], earlier: Record) -> list[Candidate]:
    """The candidates that may be fastest after an earlier record, of themselves or of their serial variants."""
    seen = {measured.label: measured.seconds for measured in earlier.candidates if measured.seconds}
    failed = {measured.label for measured in earlier.candidates if measured.error}
    best = min((seen[c.label] for c in candidates if c.label in seen), default=float("inf"))

    def may_win(candidate: Candidate) -> bool:
        if candidate.label in failed or (candidate.variant.get("parallel") and best < MIN_SECONDS_FOR_THREADS):
            return False
        took = seen.get(candidate.label) or seen.get(candidate.label_alone)
        return took is None or took <= HOPELESS_RATIO * best

    return [candidate for candidate in candidates if may_win(candidate)]


def contest(
    attr: KernelAttr,
    candidates: Sequence[Candidate],
    reference: Callable[..., Any],
    *,
    budget: float = CONTEST_SECONDS,
    build_budget: float = float("inf"),
    earlier: Record | None = None,
    again: int = 0,
) -> Record:
    """Measure candidates, passed in the static order, and rank them: the fastest first.

    A candidate that cannot be built, fails, differs from the reference or writes to an input is recorded with its
    error and never selected. Building and checking stop after `build_budget` seconds, but not before one candidate is
    ready; timing takes about `budget` seconds, but at least the fewest of `ROUNDS`. Times of an `earlier` record count
    as new samples, and candidates that it has are not checked again; for `again` see `thread_wakeup_price`.
    """
    started = perf_counter()
    trial = Trial(attr, reference, earlier)
    complete = True
    for candidate in candidates:
        if perf_counter() - started > build_budget and trial.watches and candidate is not candidates[-1]:
            complete = False
        else:
            trial.admit(candidate)
    trial.run(budget, again)
    return Record(trial.results(candidates), complete)


class Trial:
    """One comparison: the arrays, the reference's results, and a stopwatch for each candidate that agrees with them."""

    def __init__(self, attr: KernelAttr, reference: Callable[..., Any], earlier: Record | None = None) -> None:
        self._attr = attr
        self._seen = {m.label: m.seconds for m in earlier.candidates if m.seconds} if earlier else {}
        self._reference = reference
        self._inputs = attr.signature().sample()
        self._arrays = [array.copy() for array in self._inputs]
        self._best = float("inf")
        self._calls: dict[str, Callable[[], Any]] = {}
        self._out: dict[str, Measured] = {}
        self.watches: dict[str, Stopwatch] = {}
        self._penalty = THREADS_MARGIN

    def admit(self, candidate: Candidate) -> None:
        """Build and check a candidate; it is dropped if that fails or its first call is hopelessly slow."""
        label = candidate.label
        for array, original in zip(self._arrays, self._inputs, strict=True):
            array[...] = original
        try:
            function = candidate.callable()
            watch = Stopwatch(function, self._arrays, threaded=candidate.variant.get("parallel"))
            seconds = watch.call()
            # Before any second call: a kernel that accumulates into its output would add twice.
            wrong = None if label in self._seen else self._first_difference()
            if wrong is None and (
                MIN_RETIMED_SECONDS < seconds < MAX_RETIMED_SECONDS or watch.threaded
            ):  # the first may have started the threads
                seconds = min(seconds, watch.call())
        except Exception as error:  # an error of a plug-in disqualifies only its candidate
            if signal_exceptions.raised_by_signal_handler(error):
                raise
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            self._disqualify(candidate.measured, wrong)
        elif seconds > MIN_RETIMED_SECONDS and seconds > HOPELESS * self._best:
            self._out[label] = _with_time(candidate.measured, seconds, 0.0)
        else:
            self._best = min(self._best, seconds)
            self._calls[label], self.watches[label] = functools.partial(function, *self._arrays), watch
            watch.samples += [seconds, self._seen.get(label, seconds)]
            self._out[label] = candidate.measured

    def _first_difference(self) -> str | None:
        """The first error in the arrays after a call, or None."""
        expected, terms = self._expected_and_terms
        return first_difference(self._attr, self._inputs, expected, self._arrays, terms)

    @unlocked_cached_property
    def _expected_and_terms(self) -> tuple[Sequence[AnyArray], Sequence[AnyArray]]:
        """The reference's results, and the terms that rounding is relative to."""
        expected = [array.copy() for array in self._inputs]
        self._reference(*expected)
        return expected, error_bounds.terms(self._attr, self._inputs)

    def run(self, budget: float, again: int = 0) -> None:
        """Time the candidates in rounds, dropping slow ones, then measure the cost of threads."""
        running = dict(self.watches)
        least, fewest, most = ROUNDS
        started = perf_counter()
        for done in range(most if running else 0):
            share_of_budget = (perf_counter() - started) / budget if budget else float("inf")
            if (
                (done and len(running) < 2)
                or (done >= fewest and share_of_budget > 1)
                or (done >= least and share_of_budget > 4)
            ):
                break
            share = budget / (most * len(running))
            for label, watch in sorted(running.items(), key=lambda entry: entry[1].threaded):
                if watch.threaded and self._is_over_too_soon():
                    running.pop(label)
                    continue
                try:
                    watch.turn(share)
                except Exception as error:  # as above
                    if signal_exceptions.raised_by_signal_handler(error):
                        raise
                    running.pop(label), self.watches.pop(label)
                    self._disqualify(self._out[label], f"{type(error).__name__}: {error}")
            running = _still_in(running, SLOW[min(done, len(SLOW) - 1)])
        timings = {label: watch.timing for label, watch in self.watches.items()}
        self._penalty *= thread_wakeup_price(timings, self._calls, margin=THREADS_MARGIN, again=again)

    def _is_over_too_soon(self) -> bool:
        """Whether threads cannot win, since some serial candidate takes no longer than waking them."""
        serial = fastest(self.watches, False)
        return serial is not None and self.watches[serial].seconds < MIN_SECONDS_FOR_THREADS

    def results(self, candidates: Sequence[Candidate]) -> tuple[Measured, ...]:
        """All admitted candidates, ranked, then those that failed."""
        ranked: list[tuple[float, Measured]] = []
        failed: list[Measured] = []
        for measured in (self._out[c.label] for c in candidates if c.label in self._out):
            watch = self.watches.get(measured.label)
            if measured.error is not None:
                failed.append(measured)
            elif watch is None:
                ranked.append((measured.seconds or float("inf"), measured))
            else:
                timing = watch.timing
                margin = STREAM_MARGIN if measured.variant.get("stream") else 1.0
                rank = timing.seconds * (self._penalty if watch.threaded else 1.0) * margin
                ranked.append((rank, _with_time(measured, timing.seconds, timing.spread)))
        noise = 0.0 if nbytes(self._attr) >= OUTER_BYTES else MIN_RANK_GAIN
        return (*ordered(ranked, noise), *failed)

    def _disqualify(self, measured: Measured, why: str) -> None:
        kernel = f"{self._attr.kernel_type.name}({self._attr.text()})"
        log.warning("%s of %s is not used: %s", measured.label, kernel, why)
        self._out[measured.label] = Measured(measured.implementation, dict(measured.variant), error=why)


def ordered(ranked: Sequence[tuple[float, Measured]], noise: float = MIN_RANK_GAIN) -> list[Measured]:
    """Candidates by rank, except that the first of the static order within noise of the best comes first."""
    if not ranked:
        return []
    best = min(rank for rank, _ in ranked)
    pick = next(measured for rank, measured in ranked if rank <= best * (1 + noise))
    rest = [(rank, measured) for rank, measured in ranked if measured is not pick]
    return [pick, *(measured for _, measured in sorted(rest, key=lambda entry: entry[0]))]


def _still_in(running: Mapping[str, Stopwatch], slow: float) -> dict[str, Stopwatch]:
    """Those within `slow` times the best, and always the fastest serial one, which threads are compared with."""
    if not running:
        return {}
    serial = fastest(running, False)
    limit = slow * min(watch.seconds * _handicap(watch) for watch in running.values())
    return {n: w for n, w in running.items() if n == serial or w.seconds * _handicap(w) <= limit}


def _handicap(watch: Stopwatch) -> float:
    return THREADS_MARGIN if watch.threaded else 1.0


def _with_time(measured: Measured, seconds: float, spread: float) -> Measured:
    return Measured(measured.implementation, dict(measured.variant), seconds, spread)
