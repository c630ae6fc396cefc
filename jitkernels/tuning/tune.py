"""Tune on request: measure every candidate of a size class against the others, and store the record."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import Variant, implementation, implementations
from jitkernels.core import fork_locks
from jitkernels.core.progress import progress_message
from jitkernels.dispatch.kernel import Kernel
from jitkernels.dispatch.kernel_cache import KernelFuncs
from jitkernels.errors import NotUsableError
from jitkernels.runtime.threads.num_threads import get_num_threads
from jitkernels.selection import records
from jitkernels.selection.explain_selection import Explanation, explain
from jitkernels.selection.records import Record
from jitkernels.selection.select import checked, has_unmeasured_implementations, tuning_mode
from jitkernels.selection.size_classes import MIN_SECONDS_FOR_THREADS, class_of, has_elements, measured_member
from jitkernels.tuning.thread_wakeup_cost import EXTRA_MEASUREMENTS
from jitkernels.tuning.tuner import CONTEST_SECONDS, Candidate, candidates_that_may_win, contest

log = logging.getLogger("jitkernels")


def tune(attr: KernelAttr) -> Explanation:
    """Measure every implementation and variant for an attr's size class now, whatever has been measured before.

    The result is stored, and kernels are selected again. Returns the new `explain`. Attrs with empty arrays are not
    measured. Raises NotUsableError where measurements would not be used.
    """
    require_use()
    if has_elements(checked(attr)):
        tune_class(attr)
    return explain(attr)


def require_use() -> None:
    """Raise NotUsableError where measurements would not be used."""
    if tuning_mode() == "off":
        raise NotUsableError(
            "tune: JITKERNELS_TUNE=off or JITKERNELS_POLICY=reproducible: measurements would not be used"
        )


def tune_class(
    attr: KernelAttr,
    *,
    budget: float = CONTEST_SECONDS,
    build_budget: float = float("inf"),
    earlier: Record | None = None,
) -> Record:
    """Measure all candidates of an attr's size class and store the record; for other arguments see `contest`.

    With an `earlier` record, of as many threads or of one, only the candidates that may still win are measured.
    NumPy's own libraries are limited to as many threads as kernels have, or the reference would win by more threads.
    """
    member = measured_member(attr)
    started = perf_counter()
    with exclusive_measurement(member):
        entrants = still_open(attr, earlier)
        record = contest(
            member,
            entrants,
            reference(member).callable(),
            budget=budget,
            build_budget=build_budget,
            earlier=earlier,
            again=EXTRA_MEASUREMENTS,
        ).before(earlier)
        keep(attr, record, perf_counter() - started)
    KernelFuncs.cache().clear()
    return record


@contextmanager
def exclusive_measurement(attr: KernelAttr) -> Iterator[None]:
    """Exclude other measurements, limit the threads of libraries, and report progress on a terminal."""
    from threadpoolctl import threadpool_limits  # imported only to measure

    progress = progress_message(f"measuring {attr.kernel_type.name}({attr.text()})")
    with fork_locks.measure_lock, threadpool_limits(get_num_threads()), progress:
        yield


def reuse_serial_record(attr: KernelAttr, alone: Record) -> bool:
    """Whether one thread's record applies to more, as calls end before others wake up; then store it for these."""
    late = (alone.pick.seconds or 0.0) < MIN_SECONDS_FOR_THREADS and not has_unmeasured_implementations(attr, alone)
    if late:
        keep(attr, alone, 0.0)
    return late


def keep(attr: KernelAttr, record: Record, took: float) -> None:
    """Store the record of an attr's size class, and log it."""
    of_class = class_of(attr)
    records.save(of_class, record, get_num_threads())
    log.info(
        "tuned %s(%s) for %d threads in %.2f s: %s first of %d%s",
        of_class.kernel_type.name, of_class.text(), get_num_threads(), took, record.pick.label,
        len(record.candidates), "" if record.complete else ", others not measured yet",
    )  # fmt: skip


def candidates(attr: KernelAttr) -> list[Candidate]:
    """Every variant of every implementation that can compute an attr here, in the static order, ``refer`` last.

    With one thread, parallel variants are omitted: they equal the serial ones.
    """
    return [
        Candidate(candidate.name, variant, lambda f=candidate, v=variant: Kernel(attr, f, v).callable)  # type: ignore[misc]  # lambdas have no types
        for candidate in implementations(type(attr)).values()
        if candidate.reason_against(attr) is None
        for variant in _distinct(candidate.variants(attr))
    ]


def still_open(attr: KernelAttr, earlier: Record | None) -> list[Candidate]:
    """The candidates of an attr's size class that may win after an earlier record, if there is one."""
    known = candidates(measured_member(attr))
    return known if earlier is None else candidates_that_may_win(known, earlier)


def _distinct(variants: Sequence[Variant]) -> list[Variant]:
    serial = [v for v in variants if not v.get("parallel")] if get_num_threads() == 1 else []
    return serial or list(variants)


def reference(attr: KernelAttr) -> Candidate:
    """The candidate that needs no building and is correct by definition."""
    refer = implementation(type(attr), "refer")
    return Candidate(refer.name, {}, lambda: Kernel(attr, refer, {}).callable)
