"""``jitkernels tune``: measure whole sweeps, so that no later call has to predict or measure."""

import contextlib
import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.markup import escape

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.attrs.schema.registry import all_schemas, op_schema
from jitkernels.core.cpu_target import cpu_count, cpu_name
from jitkernels.errors import ArgumentError, NotUsableError, UnknownNameError
from jitkernels.runtime.loading.compiled_code import BUILD
from jitkernels.runtime.threads.num_threads import get_num_threads, set_num_threads
from jitkernels.selection.records import Record
from jitkernels.selection.select import tuning_mode
from jitkernels.selection.size_classes import OUTER_BYTES, measured_member, nbytes
from jitkernels.selection.table_io import export as export_to
from jitkernels.selection.table_io import import_from
from jitkernels.tools.cli import measured, output
from jitkernels.tools.cli.eta import Eta, Say, shown
from jitkernels.tuning.precompile import build_all, missing
from jitkernels.tuning.tune import reuse_serial_record, tune_class

BUILD_SECONDS = 60.0
"""Limit for building an attr's candidates; the next run builds the remaining ones."""
OUTER_CACHE_BUDGET_FACTOR = 4.0
"""Factor of the measuring time for attrs whose arrays lie in the outer caches."""

MULTITHREADED_SHARE = 0.5
"""First estimate of the measuring time with more threads, relative to one thread."""


def run(kernels: Sequence[str], *, tag: str, force: bool, seconds: float, scheduler: str = "") -> int:
    """Measure the size classes of the kernels' sweeps that have no complete record; print all records.

    One thread comes first: its records decide which implementations are worth measuring with more threads. `scheduler`:
    the address of a Dask scheduler whose workers measure.
    """
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"--seconds: expected a time of more than 0, got {seconds:g}")
    if tuning_mode() == "off":
        raise UnknownNameError("JITKERNELS_TUNE=off or JITKERNELS_POLICY=reproducible: measurements would not be used")
    attrs = classes([op_schema(kernel) for kernel in kernels] or all_schemas(), tag)
    threads = get_num_threads()
    records: dict[KernelAttr, Record] = {}
    measured_now = 0
    total = sum(_estimate(attr, seconds) for attr in attrs)
    eta = Eta(
        {_kinds(count)[1]: total * (1.0 if count == 1 else MULTITHREADED_SHARE) for count in _thread_counts(threads)}
    )
    with shown(eta) as say:
        for count in _thread_counts(threads):
            set_num_threads(count)
            alone, records = records, {}
            if not force:
                records = {attr: known for attr in attrs if (known := measured.complete_record(attr))}
            waiting = [attr for attr in attrs if attr not in records]
            measured_now += len(waiting)
            if scheduler:
                records |= _measure_elsewhere(waiting, scheduler, seconds, say)
            else:
                records |= _build_and_measure(waiting, seconds, alone, eta, say)
    out = output.console()
    output.show(measured.table((attr, records[attr]) for attr in attrs))
    before = len(_thread_counts(threads)) * len(attrs) - measured_now
    out.print(f"{measured_now} measured now, {before} had been measured before")
    return 0


def _thread_counts(threads: int) -> list[int]:
    """Return the thread counts to measure at. The one-thread records decide what is worth measuring with more."""
    return sorted({1, threads})


def _kinds(threads: int) -> tuple[str, str]:
    return f"building for {threads}", f"measuring {threads}"


def _build_and_measure(
    attrs: Sequence[KernelAttr], seconds: float, alone: Mapping[KernelAttr, Record], eta: Eta, say: Say
) -> dict[KernelAttr, Record]:
    """Build the candidates of attrs on all cores and measure them, some twice.

    Kernels whose data lie in outer caches are slowed for seconds at a time by other processes; such attrs get more
    time, and a second measurement after the first ones of all attrs. `alone`: the one-thread records if this run uses
    more threads; they count as a first measurement.
    """
    records = {a: alone[a] for a in attrs if a in alone and reuse_serial_record(a, alone[a])}
    attrs = [attr for attr in attrs if attr not in records]
    jobs = list(missing(attrs, alone))
    outer = {attr: None for attr in attrs if nbytes(measured_member(attr)) >= OUTER_BYTES}
    budgets = {attr: OUTER_CACHE_BUDGET_FACTOR * seconds if attr in outer else seconds for attr in attrs}
    estimates = {attr: _estimate(attr, budgets[attr]) for attr in attrs}
    queue = [*attrs] if alone else [*attrs, *outer]
    each = BUILD / cpu_count()
    threads = get_num_threads()
    building, measuring = _kinds(threads)
    eta.expect(building, each * len(jobs))
    eta.expect(measuring, sum(estimates[attr] for attr in queue))
    with contextlib.closing(build_all(jobs)) as built:
        for number, (attr, label) in enumerate(built, 1):
            eta.done(building, each)
            say(f"{threads} threads: built {number} of {len(jobs)}, {attr.name} {label}")
    for number, attr in enumerate(queue, 1):
        say(f"{threads} threads: measuring {number} of {len(queue)}, {attr.name} {attr.text()}")
        earlier = records.get(attr, alone.get(attr))
        records[attr] = tune_class(attr, budget=budgets[attr], build_budget=BUILD_SECONDS, earlier=earlier)
        eta.done(measuring, estimates[attr])
    return records


def _measure_elsewhere(
    attrs: Sequence[KernelAttr], scheduler: str, seconds: float, say: Say
) -> dict[KernelAttr, Record]:
    """Let the workers of a scheduler measure attrs. Raises NotUsableError without dask, or without such workers."""
    if importlib.util.find_spec("distributed") is None:
        raise NotUsableError("--scheduler: expected dask to be installed: pip install 'jitkernels[dask]'")
    from distributed import Client

    from jitkernels.dask_arrays.tune_workers import tune_on_workers

    with Client(scheduler) as client:
        found = tune_on_workers(client, attrs, threads=get_num_threads(), seconds=seconds, say=say)
    return found.records


def _estimate(attr: KernelAttr, budget: float) -> float:
    """Estimate the seconds of one measurement: timing, drawing and comparing arrays, warm-up of all candidates."""
    member = measured_member(attr)
    return 0.02 + budget + 1e-7 * nbytes(member) + 5e-9 * member.operations()


def tables(kernels: Sequence[str], *, export: Path | None, imported: Path | None) -> int:
    """Write a table of the stored measurements, or store the selections of a table from another machine."""
    out = output.console()
    if imported is not None:
        imports = import_from(imported)
        for why in imports.refused:
            out.print(escape(f"rejected: {why}"))
        for what in imports.unknown:
            out.print(escape(f"skipped: {what}"))
        out.print(f"{imports.kept} classes stored, {len(imports.refused)} rejected")
    if export is not None:
        count = export_to(export, [op_schema(kernel) for kernel in kernels] or all_schemas())
        out.print(escape(f"{count} classes of {cpu_name()} written to {export}"))
    return 0


def classes(attr_classes: Sequence[type[KernelAttr]], tag: str) -> list[KernelAttr]:
    """Return the distinct attrs that represent the size classes of the sweeps, in order."""
    attrs = (case.attr.size_class() for schema in attr_classes for case in schema.sweep() if tag in case.tags)
    return list(dict.fromkeys(attrs))
