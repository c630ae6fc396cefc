"""``jitkernels bench``: run a benchmark of the suite, show it, keep it, and set two runs side by side."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import threadpoolctl
from rich.markup import escape
from rich.table import Table

import jitkernels
from jitkernels.benchmark import compare, peaks, saved, stamp
from jitkernels.benchmark.saved import Run
from jitkernels.benchmark.suite import Benchmark, Line, Settings, benchmarks
from jitkernels.cli import output
from jitkernels.errors import ArgumentError, UnknownNameError
from jitkernels.peers.threads import limit
from jitkernels.registry import all_rows, row

KERNELS = "kernels"


def run(
    names: Sequence[str],
    *,
    peers: bool,
    json: Path | None,
    report: Path | None,
    against: Sequence[Path],
    tag: str,
    threads: int | None,
    seconds: float,
) -> int:
    """Measure and print; 1 if what is promised does not hold."""
    if seconds <= 0 or seconds != seconds:
        raise ArgumentError(f"--seconds: expected more than 0, got {seconds}")
    if len(against) > 2:
        raise ArgumentError(f"--compare: expected one or two files, got {len(against)}")
    if json is not None and (json.is_dir() or not json.absolute().parent.is_dir()):
        # Said before minutes of measuring.
        raise ArgumentError(f"--json: expected a file in a folder that exists, got {json}")
    if report is not None:
        from jitkernels.benchmark import (
            report as pages,
        )  # what it needs is asked for before minutes of measuring

        pages.check(report)
    runs = [saved.load(path) for path in against]
    if len(runs) == 2:
        show_changes(*runs)
        if report is not None:
            _tell(pages.write(report, runs))
        return 0
    chosen, asked = _chosen(names)
    kernels, parts = ((), asked) if chosen.parts else (asked, ())
    if threads is not None:
        jitkernels.set_num_threads(threads)
    used = jitkernels.get_num_threads()
    if peers:
        limit(used)
    settings = Settings([row(kernel) for kernel in kernels] or all_rows(), tag, seconds, used, peers, parts)
    mark = stamp.stamp(used)
    output.console().print(escape(f"{chosen.name}: {stamp.in_words(mark)}"), soft_wrap=True)
    with threadpoolctl.threadpool_limits(used):
        lines = _measure(chosen, settings)
    verdict = chosen.verdict(lines) if lines else None
    if verdict:
        output.console().print(escape(verdict.text), soft_wrap=True)
    found = Run(chosen.name, mark, tuple(lines))
    if json is not None:
        saved.save(json, found)
    for before in runs:
        show_changes(before, found)
    if report is not None:
        _tell(pages.write(report, [*runs, found], peaks.measured(used)))
    return 1 if verdict and verdict.holds is False else 0


def _tell(page: Path) -> None:
    output.console().print(escape(f"report: {page}"), soft_wrap=True)


def _chosen(names: Sequence[str]) -> tuple[Benchmark, Sequence[str]]:
    """The benchmark that the first name is, and the kernels or parts that the rest are; else all are kernels."""
    known = benchmarks()
    if names and names[0] in known:
        chosen = known[names[0]]
        parts = chosen.parts() if chosen.parts else names
        for name in names[1:]:
            if name not in parts:
                raise UnknownNameError(f"there is no {name!r} in {chosen.name}, there are {', '.join(parts)}")
        return chosen, names[1:]
    try:
        for name in names:
            row(name)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error}, and the benchmarks {', '.join(known)}") from None
    return known[KERNELS], names


def _measure(chosen: Benchmark, settings: Settings) -> list[Line]:
    """All lines, each group shown when it is complete."""
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
    """One group of lines: times by name, figures, the pick, its ratio to `against` and its regret."""
    names = list(dict.fromkeys(name for line in lines for name in line.timings))
    figures = list(dict.fromkeys(name for line in lines for name in line.figures))
    regret, detail = any(line.rivals for line in lines), any(line.detail for line in lines)
    ratio = [f"x {against}"] if against else []
    heads = [lines[0].group, "", *names, *figures, *ratio, *(["regret"] if regret else [])]
    made = output.table(*heads, right=tuple(heads[2:]))
    for line in lines:
        cells = [line.case, line.detail if detail else ""]
        cells += [output.duration(line.timings[n].seconds) if n in line.timings else "" for n in names]
        cells += [f"{line.figures[n]:.6g}" if n in line.figures else "" for n in figures]
        if against:
            speed = line.speed_over(against)
            cells.append("" if speed is None else f"{speed:.2f}")
        if regret:
            cells.append("" if line.regret is None else f"{line.regret:.1%}")
        made.add_row(*map(escape, cells))
    return made


def show_changes(before: Run, after: Run) -> None:
    """What changed beyond noise, picks that are others, and the counts."""
    out = output.console()
    for name in sorted(set(before.stamp) | set(after.stamp)):
        old, new = before.stamp.get(name), after.stamp.get(name)
        if old != new:
            out.print(escape(f"{name}: {old} before, {new} now"), soft_wrap=True)
    made = output.table("", "", "", "before", "now", "x", "", right=("before", "now", "x"))
    for change in compare.changes(before, after):
        if change.kind:
            times = (output.duration(timing.seconds) for timing in (change.before, change.after))
            made.add_row(
                *map(escape, (change.group, change.case, change.name)),
                *times,
                f"{change.ratio:.2f}",
                change.kind,
            )
    if made.row_count:
        output.show(made)
    for old_line, new_line in compare.picks_changed(before, after):
        out.print(
            escape(f"{new_line.group} {new_line.case}: pick {old_line.detail} before, {new_line.detail} now"),
            soft_wrap=True,
        )
    out.print(escape(compare.summary(before, after)), soft_wrap=True)
