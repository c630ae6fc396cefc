"""Measuring at once: every candidate of a tuning class against the others, and the record that is kept of it."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from jitkernels import locks
from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import checked, has_newcomers, tuning_mode
from jitkernels.errors import NotUsableError
from jitkernels.explanation import Explanation, explain
from jitkernels.kernel import Kernel
from jitkernels.kernel_funcs import KernelFuncs
from jitkernels.native.threads import get_num_threads
from jitkernels.patience import saying
from jitkernels.registry import Variant, implementation, implementations
from jitkernels.tuning import store
from jitkernels.tuning.classes import LEAST_FOR_THREADS, class_of, has_elements, measured_member
from jitkernels.tuning.pauses import AGAIN
from jitkernels.tuning.store import Record
from jitkernels.tuning.tuner import BUDGET, Candidate, contenders, contest

log = logging.getLogger("jitkernels")


def tune(attr: KernelAttr) -> Explanation:
    """Measure every implementation and variant for an attr's tuning class now, whatever has been measured before.

    The result is stored, and kernels are chosen anew. Returns what `explain` then says. Attrs without
    elements are not measured. Raises NotUsableError where measurements would not be used.
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
    budget: float = BUDGET,
    build_budget: float = float("inf"),
    earlier: Record | None = None,
) -> Record:
    """The record of all candidates of an attr's tuning class, measured now; for what else is given see `contest`.

    Of those that an `earlier` look saw, at as many threads or at one, the ones that may still win are measured.
    NumPy's own libraries are held to as many threads as kernels have, or the reference would win by more of them.
    """
    member = measured_member(attr)
    started = perf_counter()
    with measuring_of(member):
        found = still_open(attr, earlier)
        record = contest(
            member,
            found,
            reference(member).callable(),
            budget=budget,
            build_budget=build_budget,
            earlier=earlier,
            again=AGAIN,
        ).before(earlier)
        keep(attr, record, perf_counter() - started)
    KernelFuncs.cache().clear()
    return record


@contextmanager
def measuring_of(attr: KernelAttr) -> Iterator[None]:
    """Nobody else measures meanwhile, and a terminal hears of what is measured."""
    from threadpoolctl import threadpool_limits  # not for those who measure nothing

    said = saying(f"measuring {attr.kernel_type.name}({attr.text()})")
    with locks.measuring, threadpool_limits(get_num_threads()), said:
        yield


def keep_where_threads_are_late(attr: KernelAttr, alone: Record) -> bool:
    """Whether one thread's record holds for more: calls are over before others have woken up. Then it is kept."""
    late = (alone.pick.seconds or 0.0) < LEAST_FOR_THREADS and not has_newcomers(attr, alone)
    if late:
        keep(attr, alone, 0.0)
    return late


def keep(attr: KernelAttr, record: Record, took: float) -> None:
    """Store the record of an attr's tuning class, and say so."""
    of_class = class_of(attr)
    store.save(of_class, record, get_num_threads())
    log.info(
        "tuned %s(%s) for %d threads in %.2f s: %s first of %d%s",
        of_class.kernel_type.name, of_class.text(), get_num_threads(), took, record.pick.label,
        len(record.candidates), "" if record.complete else ", others wait their turn",
    )  # fmt: skip


def candidates(attr: KernelAttr) -> list[Candidate]:
    """Everything that can compute an attr here, variant by variant, in the static order, ``refer`` last.

    Where there is one thread, what would use several is left out: it is the same without them.
    """
    return [
        Candidate(found.name, variant, lambda f=found, v=variant: Kernel(attr, f, v).callable)  # type: ignore[misc]  # lambdas have no types
        for found in implementations(type(attr)).values()
        if found.reason_against(attr) is None
        for variant in _distinct(found.variants(attr))
    ]


def still_open(attr: KernelAttr, earlier: Record | None) -> list[Candidate]:
    """The candidates of an attr's tuning class that may win after an earlier look, if there was one."""
    found = candidates(measured_member(attr))
    return found if earlier is None else contenders(found, earlier)


def _distinct(variants: Sequence[Variant]) -> list[Variant]:
    serial = [v for v in variants if not v.get("parallel")] if get_num_threads() == 1 else []
    return serial or list(variants)


def reference(attr: KernelAttr) -> Candidate:
    """The candidate that needs no building and is right."""
    found = implementation(type(attr), "refer")
    return Candidate(found.name, {}, lambda: Kernel(attr, found, {}).callable)
