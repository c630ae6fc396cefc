"""The tuner: throw out what is wrong, drop what is slow after one call, and let noise never overturn the order.

Threads have to win by a clear margin: they cost another core, and their calls have long tails.
"""

import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from jitkernels import accuracy, handlers
from jitkernels.attrs.base import KernelAttr
from jitkernels.kept import kept_property
from jitkernels.signature import AnyArray
from jitkernels.tuning.agreement import first_difference
from jitkernels.tuning.classes import LEAST_FOR_THREADS, OUTER_BYTES, nbytes
from jitkernels.tuning.pauses import price_of_threads
from jitkernels.tuning.store import Measured, Record
from jitkernels.tuning.timer import Stopwatch, fastest

log = logging.getLogger("jitkernels")
NOISE = 0.04
"""A candidate earlier in the static order keeps its place unless another is faster by more than this. It has no such
right where arrays lie in the outer caches: all are as fast as memory there, but for those that need less of it."""
THREADS_MARGIN = 1.25
"""Threads win only by this factor."""
STREAM_MARGIN = 1.08
"""So do stores past the caches: who reads the result next finds it in none, and smaller calls of the class may lose."""
BUDGET = 0.04
"""Seconds of timing that tell the candidates of most attrs apart."""
HOPELESS = 4.0
"""A candidate whose first call takes so many times the best one's is not called again."""
SLOW = (2.0, 1.5, 1.25, 1.25, 1.12)
"""After each round candidates beyond so many times the best drop out; the last holds for all further ones."""
ROUNDS = (2, 4, 16)
"""Fewest rounds where they take many times the budget, else, and most rounds."""
BEHIND = 1.5
"""Who took so many times the best one's time in an earlier look, or on one thread, is not looked at again."""
LONG, SHORT = 2e-2, 1e-3
"""A first call may be slow by chance: below `LONG` seconds a second one is made, below `SHORT` it says nothing."""


@dataclass(frozen=True)
class Candidate:
    """Something the tuner may time: where it comes from, and how to get its callable (which may fail)."""

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
        """Of the same without threads."""
        return Measured(self.implementation, {**self.variant, "parallel": False}).label


def contenders(candidates: Sequence[Candidate], earlier: Record) -> list[Candidate]:
    """Those that may be the best after what an earlier look saw, of itself or of the same on one thread."""
    seen = {found.label: found.seconds for found in earlier.candidates if found.seconds}
    failed = {found.label for found in earlier.candidates if found.error}
    best = min((seen[c.label] for c in candidates if c.label in seen), default=float("inf"))

    def may_win(candidate: Candidate) -> bool:
        if candidate.label in failed or (candidate.variant.get("parallel") and best < LEAST_FOR_THREADS):
            return False
        took = seen.get(candidate.label) or seen.get(candidate.label_alone)
        return took is None or took <= BEHIND * best

    return [candidate for candidate in candidates if may_win(candidate)]


def contest(
    attr: KernelAttr,
    candidates: Sequence[Candidate],
    reference: Callable[..., Any],
    *,
    budget: float = BUDGET,
    build_budget: float = float("inf"),
    earlier: Record | None = None,
    again: int = 0,
) -> Record:
    """Measure candidates, given in the static order, and order them: the pick first.

    A candidate that cannot be built, fails, gives a result other than the reference's or writes to an input is
    recorded with its error and never picked. Building and checking stop after `build_budget` seconds, but not
    before one candidate is ready; timing takes about `budget` seconds, but at least the fewest of `ROUNDS`.
    What an `earlier` look saw counts as if it had been seen now, and who was right then is not checked again; for
    `again` see `price_of_threads`.
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
    """One contest: the arrays, what the reference makes of them, and a stopwatch for each candidate that agrees."""

    def __init__(
        self, attr: KernelAttr, reference: Callable[..., Any], earlier: Record | None = None
    ) -> None:
        self._attr = attr
        self._seen = {m.label: m.seconds for m in earlier.candidates if m.seconds} if earlier else {}
        self._reference = reference
        self._given = attr.signature().sample()
        self._arrays = [array.copy() for array in self._given]
        self._best = float("inf")
        self._calls: dict[str, Callable[[], Any]] = {}
        self._out: dict[str, Measured] = {}
        self.watches: dict[str, Stopwatch] = {}
        self._penalty = THREADS_MARGIN

    def admit(self, candidate: Candidate) -> None:
        """Build and check a candidate; it is out if that fails or its one call is hopelessly slow."""
        label = candidate.label
        for array, given in zip(self._arrays, self._given, strict=True):
            array[...] = given
        try:
            function = candidate.callable()
            watch = Stopwatch(function, self._arrays, threaded=candidate.variant.get("parallel"))
            taken = watch.call()
            # Before any second call: it would add to the result of one that adds to what was there.
            wrong = None if label in self._seen else self._first_difference()
            if wrong is None and (
                SHORT < taken < LONG or watch.threaded
            ):  # the first may have made the threads
                taken = min(taken, watch.call())
        except Exception as error:  # whatever a third-party candidate raises disqualifies only itself
            if handlers.have_raised(error):
                raise
            wrong = f"{type(error).__name__}: {error}"
        if wrong is not None:
            self._disqualify(candidate.measured, wrong)
        elif taken > SHORT and taken > HOPELESS * self._best:
            self._out[label] = _with_time(candidate.measured, taken, 0.0)
        else:
            self._best = min(self._best, taken)
            self._calls[label], self.watches[label] = functools.partial(function, *self._arrays), watch
            watch.samples += [taken, self._seen.get(label, taken)]
            self._out[label] = candidate.measured

    def _first_difference(self) -> str | None:
        """What is wrong with the arrays after a call."""
        expected, terms = self._right
        return first_difference(self._attr, self._given, expected, self._arrays, terms)

    @kept_property
    def _right(self) -> tuple[Sequence[AnyArray], Sequence[AnyArray]]:
        """What the reference makes of the arrays, and the terms that rounding is relative to."""
        expected = [array.copy() for array in self._given]
        self._reference(*expected)
        return expected, accuracy.terms(self._attr, self._given)

    def run(self, budget: float, again: int = 0) -> None:
        """Let the candidates take turns, fewer of them from round to round, and look at threads closely."""
        running = dict(self.watches)
        least, fewest, most = ROUNDS
        started = perf_counter()
        for done in range(most if running else 0):
            taken = (perf_counter() - started) / budget if budget else float("inf")
            if (done and len(running) < 2) or (done >= fewest and taken > 1) or (done >= least and taken > 4):
                break
            share = budget / (most * len(running))
            for label, watch in sorted(running.items(), key=lambda entry: entry[1].threaded):
                if watch.threaded and self._is_over_too_soon():
                    running.pop(label)
                    continue
                try:
                    watch.turn(share)
                except Exception as error:  # as above
                    if handlers.have_raised(error):
                        raise
                    running.pop(label), self.watches.pop(label)
                    self._disqualify(self._out[label], f"{type(error).__name__}: {error}")
            running = _still_in(running, SLOW[min(done, len(SLOW) - 1)])
        timings = {label: watch.timing for label, watch in self.watches.items()}
        self._penalty *= price_of_threads(timings, self._calls, margin=THREADS_MARGIN, again=again)

    def _is_over_too_soon(self) -> bool:
        """Whether threads cannot win, since some serial candidate takes no longer than waking them."""
        serial = fastest(self.watches, False)
        return serial is not None and self.watches[serial].seconds < LEAST_FOR_THREADS

    def results(self, candidates: Sequence[Candidate]) -> tuple[Measured, ...]:
        """All that were admitted, ranked, then those that failed."""
        ranked: list[tuple[float, Measured]] = []
        failed: list[Measured] = []
        for found in (self._out[c.label] for c in candidates if c.label in self._out):
            watch = self.watches.get(found.label)
            if found.error is not None:
                failed.append(found)
            elif watch is None:
                ranked.append((found.seconds or float("inf"), found))
            else:
                timing = watch.timing
                margin = STREAM_MARGIN if found.variant.get("stream") else 1.0
                rank = timing.seconds * (self._penalty if watch.threaded else 1.0) * margin
                ranked.append((rank, _with_time(found, timing.seconds, timing.spread)))
        noise = 0.0 if nbytes(self._attr) >= OUTER_BYTES else NOISE
        return (*ordered(ranked, noise), *failed)

    def _disqualify(self, found: Measured, why: str) -> None:
        kernel = f"{self._attr.kernel_type.name}({self._attr.text()})"
        log.warning("%s of %s is not used: %s", found.label, kernel, why)
        self._out[found.label] = Measured(found.implementation, dict(found.variant), error=why)


def ordered(ranked: Sequence[tuple[float, Measured]], noise: float = NOISE) -> list[Measured]:
    """Candidates by rank, except that the first of the static order within noise of the best comes first."""
    if not ranked:
        return []
    best = min(rank for rank, _ in ranked)
    pick = next(found for rank, found in ranked if rank <= best * (1 + noise))
    rest = [(rank, found) for rank, found in ranked if found is not pick]
    return [pick, *(found for _, found in sorted(rest, key=lambda entry: entry[0]))]


def _still_in(running: Mapping[str, Stopwatch], slow: float) -> dict[str, Stopwatch]:
    """Those within so many times the best, the fastest serial one always: threads are compared with it."""
    if not running:
        return {}
    serial = fastest(running, False)
    limit = slow * min(watch.seconds * _handicap(watch) for watch in running.values())
    return {n: w for n, w in running.items() if n == serial or w.seconds * _handicap(w) <= limit}


def _handicap(watch: Stopwatch) -> float:
    return THREADS_MARGIN if watch.threaded else 1.0


def _with_time(found: Measured, seconds: float, spread: float) -> Measured:
    return Measured(found.implementation, dict(found.variant), seconds, spread)
