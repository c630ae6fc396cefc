"""``jitkernels tune``: measure whole sweeps, so that no later call has to guess or to wait."""

import contextlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape

from jitkernels.attrs.base import KernelAttr
from jitkernels.building import build_all, missing
from jitkernels.choosing import tuning_mode
from jitkernels.cli import measured, output
from jitkernels.cli.eta import Eta, Say, shown
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.machine import cpu_count, cpu_name
from jitkernels.measuring import keep_where_threads_are_late, tune_class
from jitkernels.native.code import BUILD
from jitkernels.native.threads import get_num_threads, set_num_threads
from jitkernels.registry import all_rows, row
from jitkernels.tables import export as export_to
from jitkernels.tables import import_from
from jitkernels.tuning.classes import OUTER_BYTES, measured_member, nbytes
from jitkernels.tuning.store import Record

BUILD_SECONDS = 60.0
"""Building an attr's candidates may take so long; what is left out is taken up by the next run."""
OUTER_TIMES = 4.0
"""So many times the seconds are for each look at what lies in the outer caches."""

MORE = 0.5
"""Of the time that measuring takes on one thread, what it takes on more, before anything is known."""


def run(kernels: Sequence[str], *, tag: str, force: bool, seconds: float) -> int:
    """Measure those tuning classes of the kernels' sweeps that have no complete record; print all records.

    At one thread first: what is known of that says who may win with more.
    """
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"--seconds: expected a time of more than 0, got {seconds:g}")
    if tuning_mode() == "off":
        raise UnknownNameError(
            "JITKERNELS_TUNE=off or JITKERNELS_POLICY=reproducible: measurements would not be used"
        )
    attrs = classes([row(kernel) for kernel in kernels] or all_rows(), tag)
    threads = get_num_threads()
    records: dict[KernelAttr, Record] = {}
    measured_now = 0
    whole = sum(_guess(attr, seconds) for attr in attrs)
    eta = Eta({_kinds(count)[1]: whole * (1.0 if count == 1 else MORE) for count in _passes(threads)})
    with shown(eta) as say:
        for count in _passes(threads):
            set_num_threads(count)
            alone, records = records, {}
            if not force:
                records = {attr: known for attr in attrs if (known := measured.complete_record(attr))}
            waiting = [attr for attr in attrs if attr not in records]
            measured_now += len(waiting)
            records |= _built_and_measured(waiting, seconds, alone, eta, say)
    out = output.console()
    output.show(measured.table((attr, records[attr]) for attr in attrs))
    before = len(_passes(threads)) * len(attrs) - measured_now
    out.print(f"{measured_now} measured now, {before} had been measured before")
    return 0


def _passes(threads: int) -> list[int]:
    """Numbers of threads to measure at. What is known of one thread decides what is worth looking at with more."""
    return sorted({1, threads})


def _kinds(threads: int) -> tuple[str, str]:
    return f"building for {threads}", f"measuring {threads}"


def _built_and_measured(
    attrs: Sequence[KernelAttr], seconds: float, alone: Mapping[KernelAttr, Record], eta: Eta, say: Say
) -> dict[KernelAttr, Record]:
    """Build what the candidates of attrs come to, by all cores, and measure them, some a second time.

    Calls are long in the outer caches, of which neighbours take their share for seconds: so what lies there gets more
    time, and a second look after all other first ones. `alone`: what was measured on one thread, if this is about more,
    which was a look already.
    """
    found = {a: alone[a] for a in attrs if a in alone and keep_where_threads_are_late(a, alone[a])}
    attrs = [attr for attr in attrs if attr not in found]
    jobs = list(missing(attrs, alone))
    outer = {attr: None for attr in attrs if nbytes(measured_member(attr)) >= OUTER_BYTES}
    budgets = {attr: OUTER_TIMES * seconds if attr in outer else seconds for attr in attrs}
    guesses = {attr: _guess(attr, budgets[attr]) for attr in attrs}
    looks = [*attrs] if alone else [*attrs, *outer]
    each = BUILD / cpu_count()
    threads = get_num_threads()
    building, measuring = _kinds(threads)
    eta.expect(building, each * len(jobs))
    eta.expect(measuring, sum(guesses[attr] for attr in looks))
    with contextlib.closing(build_all(jobs)) as built:
        for number, (attr, label) in enumerate(built, 1):
            eta.done(building, each)
            say(f"{threads} threads: built {number} of {len(jobs)}, {attr.name} {label}")
    for number, attr in enumerate(looks, 1):
        say(f"{threads} threads: measuring {number} of {len(looks)}, {attr.name} {attr.text()}")
        earlier = found.get(attr, alone.get(attr))
        found[attr] = tune_class(attr, budget=budgets[attr], build_budget=BUILD_SECONDS, earlier=earlier)
        eta.done(measuring, guesses[attr])
    return found


def _guess(attr: KernelAttr, budget: float) -> float:
    """Seconds of one look: its timing, drawing and comparing arrays, and some calls of everybody."""
    member = measured_member(attr)
    return 0.02 + budget + 1e-7 * nbytes(member) + 5e-9 * member.operations()


def tables(kernels: Sequence[str], *, export: Path | None, imported: Path | None) -> int:
    """Write a table of what was measured here, or keep what one from elsewhere says."""
    out = output.console()
    if imported is not None:
        found = import_from(imported)
        for why in found.refused:
            out.print(escape(f"refused: {why}"))
        for what in found.unknown:
            out.print(escape(f"passed over: {what}"))
        out.print(f"{found.kept} classes kept, {len(found.refused)} refused")
    if export is not None:
        count = export_to(export, [row(kernel) for kernel in kernels] or all_rows())
        out.print(escape(f"{count} classes of {cpu_name()} written to {export}"))
    return 0


def classes(attr_classes: Sequence[type[KernelAttr]], tag: str) -> list[KernelAttr]:
    """The distinct attrs that are measured on behalf of those sweeps, in their order."""
    found = (case.attr.tuning_class() for row in attr_classes for case in row.sweep() if tag in case.tags)
    return list(dict.fromkeys(found))
