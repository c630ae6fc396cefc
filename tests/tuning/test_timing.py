"""The timer and the tuner on candidates of known times, and the time of a kernel lookup."""

import dataclasses
import pickle
from collections.abc import Iterator
from functools import partial
from time import perf_counter, sleep
from typing import Any

import numpy as np
import pytest
import rows_of_tests

import jitkernels as jk
from jitkernels.attrs.schema.base import KernelAttr, schemas
from jitkernels.attrs.schema.registry import all_schemas, implementations
from jitkernels.attrs.vector import UnaryVectorAttr
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records
from jitkernels.selection.records import Measured, Record
from jitkernels.selection.select import choose_component
from jitkernels.selection.size_classes import MIN_SECONDS_FOR_THREADS
from jitkernels.tuning import thread_wakeup_cost, timer, tune, tuner
from jitkernels.tuning.timer import measure
from jitkernels.tuning.tuner import Candidate, contest


class Clock:
    """Time that passes only when something is done, the same on every machine and however busy it is."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = self.slept = 0.0
        self.others = 0.0  # processor time of other threads of this process
        for module in (timer, thread_wakeup_cost, tuner):
            for name in ("perf_counter", "process_time", "thread_time", "sleep"):
                if hasattr(module, name):
                    patch.setattr(module, name, getattr(self, name))

    def perf_counter(self) -> float:
        self.now += 5e-8
        return self.now

    def process_time(self) -> float:
        return self.thread_time() + self.others

    def thread_time(self) -> float:
        return self.now - self.slept

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


class Counted:
    """A candidate that computes VMUL and takes so long, longer if it was not called for a while; counts its calls."""

    def __init__(self, clock: Clock, seconds: float, after_a_pause: float = 0.0) -> None:
        self.clock, self.seconds, self.after_a_pause = clock, seconds, after_a_pause
        self.calls = 0
        self.last = -1.0
        self.ends = float("inf")  # when pauses no longer count

    def __call__(self, x: Any, y: Any, z: Any) -> None:
        self.calls += 1
        np.multiply(x, y, out=z)
        asleep = self.clock.now - self.last > 1e-3 and self.clock.now < self.ends
        self.clock.now += self.seconds + (self.after_a_pause if asleep else 0.0)
        self.last = self.clock.now


def pick_of(**candidates: Counted) -> str:
    """Who wins; names that end in "threads" use some."""
    attr = jk.VMulAttr(n=8)
    entrants = [
        Candidate(name, {"parallel": name.endswith("threads")}, lambda c=counted: c)  # type: ignore[misc]
        for name, counted in candidates.items()
    ]
    found = contest(attr, entrants, jk.get_refer(attr), budget=0.05)
    assert len(found.candidates) == len(candidates)
    assert all(measured.seconds is not None for measured in found.candidates)
    return found.pick.implementation


def test_earlier_measurements_count(clock: Clock) -> None:
    """The minimum of both counts: another process may have disturbed either."""
    attr = jk.VMulAttr(n=8)
    disturbed, other = Counted(clock, 3e-3), Counted(clock, 2e-3)
    entrants = [Candidate("disturbed", {}, lambda: disturbed), Candidate("other", {}, lambda: other)]
    first = contest(attr, entrants, jk.get_refer(attr), budget=0.05)
    assert first.pick.implementation == "other"
    earlier = Record((Measured("disturbed", {}, 1e-3, 0.0), Measured("gone", {}, 1e-9, 0.0)))
    found = contest(attr, entrants, jk.get_refer(attr), budget=0.05, earlier=earlier)
    assert [(m.implementation, m.seconds) for m in found.candidates] == [
        ("disturbed", 1e-3),
        ("other", pytest.approx(2e-3, rel=1e-3)),
    ]


def test_slow_candidates_are_dropped_after_one_call(clock: Clock) -> None:
    fast, slow = Counted(clock, 2e-3), Counted(clock, 3e-2)
    assert pick_of(fast=fast, slow=slow) == "fast"
    assert slow.calls == 1
    assert fast.calls >= 3


@pytest.mark.parametrize("row", all_schemas(), ids=lambda row: row.name)
def test_slow_candidates_run_twice_and_are_checked_once(row: type[KernelAttr], clock: Clock) -> None:
    """A kernel that accumulates into its output gives another result at its second call."""
    for attr in {case.attr for case in row.sweep() if "ci" in case.tags}:
        if attr.operations() > 1e6:
            continue
        refer = jk.get_refer(attr)

        def slow(*arrays: Any, refer: Any = refer) -> None:
            refer(*arrays)
            clock.now += 5e-3

        (found,) = contest(attr, [Candidate("slow", {}, lambda f=slow: f)], refer, budget=0.0).candidates  # type: ignore[misc]
        assert found.error is None


def test_losing_candidates_are_dropped(clock: Clock) -> None:
    """Of candidates that are called again, the slower ones get fewer calls."""
    best, near, far = Counted(clock, 1e-4), Counted(clock, 1.3e-4), Counted(clock, 2.6e-4)
    assert pick_of(far=far, near=near, best=best) == "best"
    assert far.calls < near.calls < best.calls


def test_contests_keep_their_time_budget(clock: Clock) -> None:
    """Long calls run few times, short ones as often as fits."""
    for seconds in (1e-7, 1e-5, 1e-3, 0.1):
        field = {f"c{i}": Counted(clock, seconds * (1 + i / 50)) for i in range(5)}
        started = clock.now
        pick_of(**field)
        assert clock.now - started < 0.15 + 25 * seconds


def test_threads_win_only_by_a_clear_margin(clock: Clock) -> None:
    assert pick_of(serial=Counted(clock, 3e-4), threads=Counted(clock, 2.7e-4)) == "serial"
    assert pick_of(threads=Counted(clock, 2.7e-4), serial=Counted(clock, 3e-4)) == "serial"
    assert pick_of(serial=Counted(clock, 3e-4), threads=Counted(clock, 2e-4)) == "threads"


@pytest.mark.parametrize(("taken", "pick"), [(0.95e-3, False), (0.9e-3, True)])
def test_streaming_stores_win_only_by_a_clear_margin(clock: Clock, taken: float, pick: bool) -> None:
    attr = jk.VMulAttr(n=1 << 20)
    seconds = {False: 1e-3, True: taken}
    field = [Candidate("gen", {"stream": s}, lambda s=s: Counted(clock, seconds[s])) for s in (True, False)]  # type: ignore[misc]
    found = contest(attr, field, jk.get_refer(attr), budget=0.01)
    assert found.pick.variant == {"stream": pick}


def test_threads_are_timed_after_pauses(clock: Clock) -> None:
    """Twice as fast in sequence, but three times slower when woken: users that pause would lose."""
    serial = Counted(clock, 3e-4)
    assert pick_of(serial=serial, threads=Counted(clock, 1.5e-4, after_a_pause=7e-4)) == "serial"
    assert pick_of(serial=serial, threads=Counted(clock, 1.5e-4, after_a_pause=3e-5)) == "threads"


def test_threads_are_not_timed_against_calls_shorter_than_their_wakeup(clock: Clock) -> None:
    """Two calls check their results, and no timing round follows."""
    for seconds, timed in ((0.9 * MIN_SECONDS_FOR_THREADS, False), (1.2 * MIN_SECONDS_FOR_THREADS, True)):
        threads = Counted(clock, 0.5 * seconds, after_a_pause=seconds)
        assert pick_of(threads=threads, serial=Counted(clock, seconds)) == "serial"
        assert (threads.calls > 2) == timed


@pytest.mark.parametrize("row", all_schemas(), ids=lambda row: row.name)
def test_one_thread_measures_serial_variants(row: type[KernelAttr], restored_threads: int) -> None:
    """All serial variants; several threads measure all variants."""
    attr = max((case.attr for case in row.sweep()), key=lambda attr: attr.operations())
    labels = []
    for threads in (1, 2):
        jk.set_num_threads(threads)
        labels.append([(c.implementation, dict(c.variant)) for c in tune.candidates(attr)])
    alone, together = labels
    everything = [
        (found.name, dict(variant))
        for found in implementations(row).values()
        if found.reason_against(attr) is None
        for variant in found.variants(attr)
    ]
    assert together == everything
    serial = [entry for entry in everything if not entry[1].get("parallel")]
    assert alone == serial


def test_wakeup_price_is_that_of_the_worse_case(clock: Clock) -> None:
    """Awake threads take half the time, sleeping ones five times. Where they lose anyway, none is measured."""
    timings = {"threads": timer.Timing(1e-4, 0.0, threaded=True), "serial": timer.Timing(2e-4, 0.0)}
    arrays = jk.VMulAttr(n=8).signature().sample()

    def price(margin: float = 1.0, **after_a_pause: float) -> float:
        calls = {
            name: partial(Counted(clock, timing.seconds, **after_a_pause if timing.threaded else {}), *arrays)
            for name, timing in timings.items()
        }
        return thread_wakeup_cost.thread_wakeup_price(timings, calls, margin=margin)

    assert price(after_a_pause=5e-4) == pytest.approx(6, rel=0.02)
    assert price() == pytest.approx(1, rel=0.02)
    assert price(margin=2.5, after_a_pause=5e-4) == 1


def test_threads_delayed_by_a_busy_core_are_timed_again(clock: Clock) -> None:
    """They save a millisecond, and waking them never takes that long."""
    threads, serial = Counted(clock, 1e-3, after_a_pause=5e-3), Counted(clock, 2e-3)
    arrays = jk.VMulAttr(n=8).signature().sample()
    timings = {"threads": timer.Timing(1e-3, 0.0, threaded=True), "serial": timer.Timing(2e-3, 0.0)}
    calls = {name: partial(call, *arrays) for name, call in (("threads", threads), ("serial", serial))}
    for lasts, least, most in ((0.3, 1.0, 1.2), (1e9, 5.5, 6.5)):
        threads.ends = clock.now + lasts
        assert least <= thread_wakeup_cost.thread_wakeup_price(timings, calls, margin=1.25) <= most


def test_threads_of_libraries_are_detected(clock: Clock) -> None:
    """They use more CPU time than wall-clock time."""
    alone = timer.Stopwatch(lambda: setattr(clock, "now", clock.now + 1e-3), ())
    alone.call()
    assert not alone.threaded

    def two_threads() -> None:
        clock.now += 1e-3
        clock.others += 1e-3

    busy = timer.Stopwatch(two_threads, ())
    assert busy.call() == pytest.approx(1e-3, rel=0.01)
    assert busy.threaded


def test_threads_that_start_late_are_detected(clock: Clock) -> None:
    """Until then the CPU time of the calling thread counted, which is less."""

    def hidden() -> None:
        clock.now += 1e-3
        if len(watch.samples) > 1:
            clock.slept += 0.5e-3
            clock.others += 1e-3

    watch = timer.Stopwatch(hidden, ())
    watch.samples.append(watch.call())
    for threaded in (False, True, True):
        watch.turn(1e-2)
        assert watch.threaded == threaded
        assert watch.seconds == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 3e-4, 1e-2, 0.5])
@pytest.mark.parametrize("threaded", [None, False, True])
def test_core_contention_counts_for_threads_only(clock: Clock, seconds: float, threaded: bool | None) -> None:
    """Every call of a millisecond is disturbed, and shorter ones are not always. Threads take their wall-clock time."""

    def disturbed() -> None:
        clock.now += seconds
        if threaded:
            clock.others += seconds
        if seconds >= timer.DISTURBED_SECONDS:
            clock.now += 2 * seconds
            clock.slept += 2 * seconds

    watch = timer.Stopwatch(disturbed, (), threaded=threaded)
    watch.samples.append(watch.call())
    watch.turn(1e-3)
    waits = bool(threaded) and seconds >= timer.DISTURBED_SECONDS
    assert watch.samples[0] == pytest.approx(seconds * (3 if waits else 1), rel=0.1)
    assert min(watch.samples[1:]) == pytest.approx(seconds * (3 if waits else 1), rel=0.1)


def test_measure_is_bounded_by_its_budget() -> None:
    """However long calls take; each is timed by itself."""
    calls = {"a": lambda: sleep(1e-3), "b": lambda: sleep(3e-3)}
    started = perf_counter()
    found = measure(calls, budget=0.1, rounds=(2, 20))
    assert perf_counter() - started < 1.0
    assert found["a"].seconds < 2.5e-3 < found["b"].seconds
    assert all(timing.spread >= 0 for timing in found.values())


def test_a_contest_of_the_reference_alone() -> None:
    attr = jk.VMulAttr(n=8)
    only = Candidate("refer", {}, lambda: jk.get_refer(attr))
    assert contest(attr, [only], jk.get_refer(attr)).pick.seconds is not None
    assert tuner.ordered([]) == []


@pytest.fixture
def many_rows(fresh: object) -> Iterator[list[type[KernelAttr]]]:
    """Declare a hundred rows whose attrs have the same fields."""
    names = [f"ALIKE_{number}" for number in range(100)]
    made: list[type[KernelAttr]] = [
        type(f"Alike{name}Attr", (UnaryVectorAttr,), {"__doc__": "y = x"}, kernel_type=name) for name in names
    ]
    yield made
    for row in made:
        rows_of_tests.take_out(row)


def test_equal_fields_of_a_hundred_rows_do_not_collide(many_rows: list[type[KernelAttr]]) -> None:
    """Equal fields in a hundred rows make no two attrs meet, which would be compared one after the other.

    ``jitkernels bench at-hit`` reports how long a hit takes then.
    """
    cache = KernelFuncs.cache()
    attrs = [row(n=64) for row in many_rows]
    assert len({hash(attr) for attr in attrs}) == 100
    cache._selected.update({attr._key: print for attr in attrs})
    own, equal = attrs[-1], many_rows[-1](n=64)
    assert own == equal
    assert cache.at(own) is print
    assert cache.at(equal) is print
    assert len({hash(attr._key) for attr in attrs}) == 100


def test_attrs_are_equal_by_class_and_fields() -> None:
    for row in schemas.values():
        for case in list(row.sweep())[:20]:
            attr, fields = case.attr, case.attr.fields()
            again = row(**fields)
            assert again == attr
            assert hash(again) == hash(attr)
            assert pickle.loads(pickle.dumps(attr)) == attr
            assert dataclasses.replace(attr) == attr  # type: ignore[type-var]  # a dataclass
    assert jk.VExpAttr(n=8) != jk.VSigmoidAttr(n=8)
    assert jk.VExpAttr(n=8) != jk.VExpAttr(n=8, dtype="float64")
    assert jk.VExpAttr(n=8) != 8


def test_hashes_are_not_pickled() -> None:
    """String hashes differ between processes: a copy computes its own."""
    assert b"_hash" not in pickle.dumps(jk.VExpAttr(n=8))


def test_components_are_serial_compiled_picks(fresh: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured, and no compositions; pins do not apply."""
    from picks import record

    attr = jk.VSigmoidAttr(n=1 << 16)
    assert choose_component(attr).implementation.name == "gen"
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    variant = {"unroll": 2, "vector_bytes": 32, "stream": False}
    parallel = record("gen", variant={**variant, "parallel": True}).candidates
    serial = record("intrinsic", "gen", variant={**variant, "parallel": False}).candidates
    found = records.Record((*parallel, *record("mix", "refer").candidates, *serial))
    records.save(attr.size_class(), found, get_num_threads())
    choice = choose_component(attr)
    assert (choice.implementation.name, choice.rule) == ("gen", "measured")
    assert choice.variant == {**variant, "parallel": False}
    with jk.use(implementation="refer"):
        assert choose_component(attr) == choice


def test_compositions_call_the_pick(fresh: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of `mix` changes with the measured component."""
    from picks import record

    from jitkernels.attrs.schema.registry import implementation
    from jitkernels.attrs.vector import VExpAttr
    from jitkernels.microkernels.chunking import PIECE

    def text() -> str:
        attr = jk.SoftmaxAttr(rows=3, n=5)
        return str(implementation(type(attr), "mix").function(attr).text)

    static = text()
    monkeypatch.setenv("JITKERNELS_TUNE", "replay")
    inner = VExpAttr(n=PIECE)
    other = implementation(VExpAttr, "gen").variants(inner)[-1]
    assert not other.get("parallel")
    records.save(inner.size_class(), record("gen", variant=dict(other)), get_num_threads())
    assert text() != static
