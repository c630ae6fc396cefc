"""``jitkernels bench``: run a benchmark of the suite, print it, store it, and compare two runs."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import threadpoolctl
from rich.markup import escape
from rich.table import Table

import jitkernels
from jitkernels.attrs.schema.registry import all_schemas, op_schema
from jitkernels.benchmarks import compare, saved, stamp
from jitkernels.benchmarks.peers.threads import limit
from jitkernels.benchmarks.saved import Run
from jitkernels.benchmarks.suite import Benchmark, Line, Settings, benchmarks
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.tools.cli import output
from jitkernels.tuning import peaks

KERNELS = "kernels"


class Options(NamedTuple):
    """The options of the command; `against` are the files of earlier runs to compare with."""

    peers: bool = False
    json: Path | None = None
    report: Path | None = None
    against: Sequence[Path] = ()
    tag: str = "ci"
    threads: int | None = None
    seconds: float = 0.25
    batch: int = 1


def run(names: Sequence[str], options: Options) -> int:
    """Measure and print; return 1 if the benchmark misses a promised figure."""
    _, json, report, against, tag, threads, seconds, batch = options
    if batch < 1:
        raise ArgumentError(f"--batch: expected 1 or more, got {batch}")
    if seconds <= 0 or seconds != seconds:
        raise ArgumentError(f"--seconds: expected more than 0, got {seconds}")
    if len(against) > 2:
        raise ArgumentError(f"--compare: expected one or two files, got {len(against)}")
    if json is not None and (json.is_dir() or not json.absolute().parent.is_dir()):
        # Fail before minutes of measuring.
        raise ArgumentError(f"--json: expected a file in a folder that exists, got {json}")
    if report is not None:
        from jitkernels.benchmarks import report as pages

        pages.check(report)
    runs = [saved.load(path) for path in against]
    if len(runs) == 2:
        show_changes(*runs)
        if report is not None:
            _print_report_path(pages.write(report, runs))
        return 0
    chosen, requested = _select_benchmark(names)
    kernels, parts = ((), requested) if chosen.parts else (requested, ())
    if threads is not None:
        jitkernels.set_num_threads(threads)
    used = jitkernels.get_num_threads()
    if options.peers:
        limit(used)
    settings = Settings(
        [op_schema(kernel) for kernel in kernels] or all_schemas(), tag, seconds, used, options.peers, parts, batch
    )
    machine = stamp.stamp(used)
    output.console().print(escape(f"{chosen.name}: {stamp.in_words(machine)}"), soft_wrap=True)
    with threadpoolctl.threadpool_limits(used):
        lines = _measure(chosen, settings)
    verdict = chosen.verdict(lines) if lines else None
    if verdict:
        output.console().print(escape(verdict.text), soft_wrap=True)
    result = Run(chosen.name, machine, tuple(lines))
    if json is not None:
        saved.save(json, result)
    for before in runs:
        show_changes(before, result)
    if report is not None:
        _print_report_path(pages.write(report, [*runs, result], peaks.measured(used)))
    return 1 if verdict and verdict.holds is False else 0


def _print_report_path(page: Path) -> None:
    output.console().print(escape(f"report: {page}"), soft_wrap=True)


def _select_benchmark(names: Sequence[str]) -> tuple[Benchmark, Sequence[str]]:
    """Return the benchmark that the first name selects, and its parts: the other names; default: all are kernels."""
    known = benchmarks()
    if names and names[0] in known:
        chosen = known[names[0]]
        parts = chosen.parts() if chosen.parts else names
        for name in names[1:]:
            if name not in parts:
                raise UnknownNameError(f"{chosen.name}: expected parts among {', '.join(parts)}, got {name!r}")
        return chosen, names[1:]
    try:
        for name in names:
            op_schema(name)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error}, and the benchmarks {', '.join(known)}") from None
    return known[KERNELS], names


def _measure(chosen: Benchmark, settings: Settings) -> list[Line]:
    """Measure all lines and print each group as soon as it is complete."""
    lines: list[Line] = []
    with output.progress() as bar:
        task = bar.add_task(escape(chosen.name), total=None)
        for _, group in itertools.groupby(chosen.run(settings), key=lambda line: line.group):
            own = []
            for line in group:
                own.append(line)
                bar.update(task, advance=1, description=escape(f"{line.group} {line.case}"))
            output.show(_table(own, chosen.against))
            lines += own
    return lines


def _table(lines: Sequence[Line], against: str) -> Table:
    """Return a table of a group of lines: times by name, figures, the selection, its ratio to `against`, regret."""
    names = list(dict.fromkeys(name for line in lines for name in line.timings))
    figures = list(dict.fromkeys(name for line in lines for name in line.figures))
    regret, detail = any(line.rivals for line in lines), any(line.detail for line in lines)
    ratio = [f"x {against}"] if against else []
    heads = [lines[0].group, "", *names, *figures, *ratio, *(["regret"] if regret else [])]
    table = output.table(*heads, right=tuple(heads[2:]))
    for line in lines:
        cells = [line.case, line.detail if detail else ""]
        cells += [output.duration(line.timings[n].seconds) if n in line.timings else "" for n in names]
        cells += [f"{line.figures[n]:.6g}" if n in line.figures else "" for n in figures]
        if against:
            speed = line.speed_over(against)
            cells.append("" if speed is None else f"{speed:.2f}")
        if regret:
            cells.append("" if line.regret is None else f"{line.regret:.1%}")
        table.add_row(*map(escape, cells))
    return table


def show_changes(before: Run, after: Run) -> None:
    """Print changes beyond noise, changed selections, and their counts."""
    out = output.console()
    for name in sorted(set(before.stamp) | set(after.stamp)):
        old, new = before.stamp.get(name), after.stamp.get(name)
        if old != new:
            out.print(escape(f"{name}: {old} before, {new} now"), soft_wrap=True)
    table = output.table("", "", "", "before", "now", "x", "", right=("before", "now", "x"))
    for change in compare.changes(before, after):
        if change.kind:
            times = (output.duration(timing.seconds) for timing in (change.before, change.after))
            table.add_row(
                *map(escape, (change.group, change.case, change.name)), *times, f"{change.ratio:.2f}", change.kind
            )
    if table.row_count:
        output.show(table)
    for old_line, new_line in compare.picks_changed(before, after):
        out.print(
            escape(f"{new_line.group} {new_line.case}: pick {old_line.detail} before, {new_line.detail} now"),
            soft_wrap=True,
        )
    out.print(escape(compare.summary(before, after)), soft_wrap=True)
