"""``jitkernels tour``: the main job, what was measured for it, and the proof that NumPy agrees."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.markup import escape

import jitkernels
from jitkernels import tour
from jitkernels.attrs.base import KernelAttr
from jitkernels.choosing import tuning_mode
from jitkernels.cli import measured, output
from jitkernels.measuring import tune_class
from jitkernels.registry import row
from jitkernels.signature import AnyArray
from jitkernels.tuning.store import Record

ALLOWED_DIFFERENCE = 1e-3
"""Between two probabilities: scores of order 40 in float32 and sums of 512 products."""
KERNELS_AFTER_POOLING = 3


def run(files: Sequence[Path]) -> int:
    """Run the pipeline, with the fastest kernels and with NumPy, and print what it found."""
    words = tour.read_files(files) if files else tour.read_standard_library()
    given = tour.documents(words)
    records = _tuned(given)
    started = perf_counter()
    alike = tour.likeness(given, _everyday)
    between = perf_counter()
    with jitkernels.use(implementation="refer"):
        reference = tour.likeness(given, _everyday)
    ended = perf_counter()
    _print_neighbours(given, alike, "files" if files else "modules of the standard library")
    out = output.console()
    out.print()
    if records:
        output.show(measured.table(records.items()))
        out.print()
    fast, slow = between - started, ended - between
    out.print(
        f"whole pipeline: {output.duration(fast)}, with NumPy {output.duration(slow)}: "
        f"{slow / fast:.1f} times faster"
    )
    difference, moved = tour.agree(alike, reference)
    same = difference <= ALLOWED_DIFFERENCE
    out.print(
        f"{'the' if same else 'NOT the'} same answer as NumPy: probabilities differ by at most "
        f"{difference:.1e} (allowed {ALLOWED_DIFFERENCE:.0e}), {moved} of {len(given)} have another nearest one"
    )
    return 0 if same else 1


def _everyday(kernel: str, *arguments: Any, **options: Any) -> AnyArray:
    result: AnyArray = getattr(jitkernels, kernel)(*arguments, **options)
    return result


def _tuned(given: tour.Documents) -> dict[KernelAttr, Record]:
    """Go through the pipeline once, measuring what has no record yet; the records of what it uses."""
    records: dict[KernelAttr, Record] = {}
    may_measure = tuning_mode() == "auto"
    with output.progress() as bar:
        task = bar.add_task("", total=len(given.groups) + KERNELS_AFTER_POOLING)

        def call(kernel: str, *arguments: Any, **options: Any) -> AnyArray:
            attr = row(kernel).call(*arguments, **options).attr.tuning_class()
            bar.update(task, description=escape(f"measuring {kernel} {attr.text()}"))
            record = measured.complete_record(attr)
            if record is None and may_measure:
                record = tune_class(attr, build_budget=15.0)
            if record is not None:
                records[attr] = record
            bar.advance(task)
            return _everyday(kernel, *arguments, **options)

        tour.likeness(given, call)
    return records


def _print_neighbours(given: tour.Documents, alike: AnyArray, what: str) -> None:
    out = output.console()
    out.print(f"{len(given)} {what}, and those nearest to some of them:\n")
    table = output.table("", "nearest", "next", "then")
    for document in tour.examples(given.names):
        found = [f"{given.names[i]} {alike[document, i]:.0%}" for i in tour.nearest(alike, document)]
        table.add_row(escape(given.names[document]), *map(escape, found))
    output.show(table)
