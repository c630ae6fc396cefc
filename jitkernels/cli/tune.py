"""``jitkernels tune``: measure whole sweeps, so that no later call has to guess or to wait."""

import math
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from jitkernels.attrs.base import KernelAttr
from jitkernels.building import build_all
from jitkernels.choosing import tuning_mode
from jitkernels.cli import measured, output
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.machine import cpu_name
from jitkernels.measuring import tune_class
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
    known = {attr: None if force else measured.complete_record(attr) for attr in attrs}
    records: dict[KernelAttr, Record] = {}
    waiting = [attr for attr, record in known.items() if record is None]
    with output.progress() as bar:
        task = bar.add_task("", total=len(waiting))
        for attr in build_all(waiting):
            bar.update(task, description=escape(f"built {attr.name} {attr.text()}"), advance=1)
        # Calls are long in the outer caches, of which neighbours take their share for seconds: so these get more time,
        # and a second look after all other first ones.
        again = {attr: None for attr in waiting if nbytes(measured_member(attr)) >= OUTER_BYTES}
        bar.reset(task, total=len(attrs) + len(again))
        for attr in (*attrs, *again):
            bar.update(task, description=escape(f"{attr.name} {attr.text()}"))
            budget = OUTER_TIMES * seconds if attr in again else seconds
            records[attr] = known[attr] or tune_class(
                attr, budget=budget, build_budget=BUILD_SECONDS, earlier=records.get(attr)
            )
            bar.advance(task)
    out = output.console()
    output.show(measured.table(records.items()))
    out.print(f"{len(waiting)} measured now, {len(attrs) - len(waiting)} had been measured before")
    return 0


def tables(kernels: Sequence[str], *, export: Path | None, imported: Path | None) -> int:
    """Write a table of what was measured here, or keep what one from elsewhere says."""
    out = output.console()
    if imported is not None:
        found = import_from(imported)
        for why in found.refused:
            out.print(escape(f"refused: {why}"))
        out.print(f"{found.kept} classes kept, {len(found.refused)} refused")
    if export is not None:
        count = export_to(export, [row(kernel) for kernel in kernels] or all_rows())
        out.print(escape(f"{count} classes of {cpu_name()} written to {export}"))
    return 0


def classes(attr_classes: Sequence[type[KernelAttr]], tag: str) -> list[KernelAttr]:
    """The distinct attrs that are measured on behalf of those sweeps, in their order."""
    found = (case.attr.tuning_class() for row in attr_classes for case in row.sweep() if tag in case.tags)
    return list(dict.fromkeys(found))
