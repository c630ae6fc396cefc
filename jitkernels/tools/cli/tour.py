"""``jitkernels tour``: run the demo pipeline, show its measurements, and compare its results with NumPy."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.markup import escape

import jitkernels
from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import op_schema
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.selection.records import Record
from jitkernels.selection.select import tuning_mode
from jitkernels.tools import demo
from jitkernels.tools.cli import measured, output
from jitkernels.tuning.tune import tune_class

ALLOWED_DIFFERENCE = 1e-3
"""Of two probabilities, from scores of order 40 in float32 and sums of 512 products."""
KERNELS_AFTER_POOLING = 3


def run(files: Sequence[Path]) -> int:
    """Run the pipeline with the fastest kernels and with NumPy, and print its results."""
    words = demo.read_files(files) if files else demo.read_standard_library()
    documents = demo.documents(words)
    records = _tune_pipeline(documents)
    started = perf_counter()
    similarity = demo.likeness(documents, _everyday)
    between = perf_counter()
    with jitkernels.use(implementation="refer"):
        reference = demo.likeness(documents, _everyday)
    ended = perf_counter()
    _print_neighbours(documents, similarity, "files" if files else "modules of the standard library")
    out = output.console()
    out.print()
    if records:
        output.show(measured.table(records.items()))
        out.print()
    fast, slow = between - started, ended - between
    out.print(
        f"whole pipeline: {output.duration(fast)}, with NumPy {output.duration(slow)}: {slow / fast:.1f} times faster"
    )
    difference, moved = demo.agree(similarity, reference)
    same = difference <= ALLOWED_DIFFERENCE
    out.print(
        f"{'the' if same else 'NOT the'} same answer as NumPy: probabilities differ by at most "
        f"{difference:.1e} (allowed {ALLOWED_DIFFERENCE:.0e}), {moved} of {len(documents)} have another nearest one"
    )
    return 0 if same else 1


def _everyday(kernel: str, *arguments: Any, **options: Any) -> AnyArray:
    result: AnyArray = getattr(jitkernels, kernel)(*arguments, **options)
    return result


def _tune_pipeline(documents: demo.Documents) -> dict[KernelAttr, Record]:
    """Run the pipeline once, measure what has no record yet, and return the records of the kernels it uses."""
    records: dict[KernelAttr, Record] = {}
    may_measure = tuning_mode() == "auto"
    with output.progress() as bar:
        task = bar.add_task("", total=len(documents.groups) + KERNELS_AFTER_POOLING)

        def call(kernel: str, *arguments: Any, **options: Any) -> AnyArray:
            attr = op_schema(kernel).call(*arguments, **options).attr.size_class()
            bar.update(task, description=escape(f"measuring {kernel} {attr.text()}"))
            record = measured.complete_record(attr)
            if record is None and may_measure:
                record = tune_class(attr, build_budget=15.0)
            if record is not None:
                records[attr] = record
            bar.advance(task)
            return _everyday(kernel, *arguments, **options)

        demo.likeness(documents, call)
    return records


def _print_neighbours(documents: demo.Documents, similarity: AnyArray, what: str) -> None:
    out = output.console()
    out.print(f"{len(documents)} {what}, and those nearest to some of them:\n")
    table = output.table("", "nearest", "next", "then")
    for document in demo.examples(documents.names):
        neighbours = [f"{documents.names[i]} {similarity[document, i]:.0%}" for i in demo.nearest(similarity, document)]
        table.add_row(escape(documents.names[document]), *map(escape, neighbours))
    output.show(table)
