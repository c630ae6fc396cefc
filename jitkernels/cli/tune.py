"""``jitkernels tune``: measure whole sweeps, so that no later call has to guess or to wait."""

import contextlib
import math
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from jitkernels.attrs.base import KernelAttr
from jitkernels.building import build_all, missing
from jitkernels.choosing import tuning_mode
from jitkernels.cli import measured, output
from jitkernels.cli.eta import Eta, shown
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.machine import cpu_count, cpu_name
from jitkernels.measuring import tune_class
from jitkernels.native.code import BUILD
from jitkernels.registry import all_rows, row
from jitkernels.tables import export as export_to
from jitkernels.tables import import_from
from jitkernels.tuning.classes import OUTER_BYTES, measured_member, nbytes
from jitkernels.tuning.store import Record

BUILD_SECONDS = 60.0
"""Building an attr's candidates may take so long; what is left out is taken up by the next run."""
OUTER_TIMES = 4.0
"""So many times the seconds are for each look at what lies in the outer caches."""


def run(kernels: Sequence[str], *, tag: str, force: bool, seconds: float) -> int:
    """Measure those tuning classes of the kernels' sweeps that have no complete record; print all records."""
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"--seconds: expected a time of more than 0, got {seconds:g}")
    if tuning_mode() == "off":
        raise UnknownNameError(
            "JITKERNELS_TUNE=off or JITKERNELS_POLICY=reproducible: measurements would not be used"
        )
    attrs = classes([row(kernel) for kernel in kernels] or all_rows(), tag)
    records = {} if force else {attr: found for attr in attrs if (found := measured.complete_record(attr))}
    waiting = [attr for attr in attrs if attr not in records]
    records |= _built_and_measured(waiting, seconds)
    out = output.console()
    output.show(measured.table((attr, records[attr]) for attr in attrs))
    out.print(f"{len(waiting)} measured now, {len(attrs) - len(waiting)} had been measured before")
    return 0


def _built_and_measured(attrs: Sequence[KernelAttr], seconds: float) -> dict[KernelAttr, Record]:
    """Build what the candidates of attrs come to, by all cores, and measure them, some a second time.

    Calls are long in the outer caches, of which neighbours take their share for seconds: so what lies there gets more
    time, and a second look after all other first ones.
    """
    jobs = list(missing(attrs))
    outer = {attr: None for attr in attrs if nbytes(measured_member(attr)) >= OUTER_BYTES}
    budgets = {attr: OUTER_TIMES * seconds if attr in outer else seconds for attr in attrs}
    guesses = {attr: _guess(attr, budgets[attr]) for attr in attrs}
    looks = [*attrs, *outer]
    each = BUILD / cpu_count()
    eta = Eta({"building": each * len(jobs), "measuring": sum(guesses[attr] for attr in looks)})
    found: dict[KernelAttr, Record] = {}
    with shown(eta) as say, contextlib.closing(build_all(jobs)) as built:
        for number, (attr, label) in enumerate(built, 1):
            eta.done("building", each)
            say(f"built {number} of {len(jobs)}, {attr.name} {label}")
        for number, attr in enumerate(looks, 1):
            say(f"measuring {number} of {len(looks)}, {attr.name} {attr.text()}")
            found[attr] = tune_class(
                attr, budget=budgets[attr], build_budget=BUILD_SECONDS, earlier=found.get(attr)
            )
            eta.done("measuring", guesses[attr])
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
