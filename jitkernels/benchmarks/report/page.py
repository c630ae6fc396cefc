"""The report page: a run's stamp, its charts, and a sortable table of every line; for two runs also the changes."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import jitkernels
from jitkernels.benchmarks import compare
from jitkernels.benchmarks.report import charts, contest_charts
from jitkernels.benchmarks.report.points import Point, points_of
from jitkernels.benchmarks.report.template import rendered
from jitkernels.benchmarks.saved import Run
from jitkernels.benchmarks.suite import Line, benchmarks
from jitkernels.benchmarks.table import geometric_mean, regrets
from jitkernels.benchmarks.units import duration
from jitkernels.tuning.peaks import Peaks

FIRST = ("refer", "numpy")
"""Baselines of speedups, in order of preference."""


def page_of(runs: Sequence[Run], peaks: Peaks | None) -> str:
    """Return the text of the page. Of two runs the earlier comes first; the tables are those of the later."""
    run = runs[-1]
    registered = benchmarks().get(run.benchmark)
    points = points_of(run.lines)
    return rendered(
        title=f"jitkernels: {run.benchmark}",
        summary=registered.summary if registered else "",
        verdict=registered.verdict(list(run.lines)).text if registered and run.lines else "",
        version=jitkernels.__version__,
        stamps=_stamps(runs),
        figures=_figures(points, peaks),
        groups=[_group(name, list(lines), points) for name, lines in _by_group(run.lines)],
        changes=_changes(*runs) if len(runs) > 1 else None,
        peaks=_limits(peaks),
        duration=duration,
    )


def _by_group(lines: Sequence[Line]) -> list[tuple[str, list[Line]]]:
    ordered = sorted(lines, key=lambda line: line.group)
    return [(name, list(own)) for name, own in itertools.groupby(ordered, key=lambda line: line.group)]


def _stamps(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """Return facts about machine and versions: a name, and the value of each run."""
    names = list(dict.fromkeys(name for run in runs for name in run.stamp))
    return [(name, [str(run.stamp.get(name, "")) for run in runs]) for name in names]


def _limits(peaks: Peaks | None) -> list[tuple[str, str]]:
    if peaks is None:
        return []
    limits = [(f"{dtype} multiply-adds", f"{peak / 1e9:.1f} GFLOP/s") for dtype, peak in peaks.operations.items()]
    return [*limits, ("triad of 3 arrays in memory", f"{peaks.bandwidth / 1e9:.1f} GB/s")]


def _figures(points: Sequence[Point], peaks: Peaks | None) -> list[dict[str, str]]:
    """Return the charts over all kernels."""
    if not points:
        return []
    charts_of_all = []
    for against in _compared([point.line for point in points]):
        speeds: dict[str, list[float]] = {}
        for point in points:
            ratio = point.line.speed_over(against)
            if ratio is not None:
                speeds.setdefault(point.line.group, []).append(ratio)
        charts_of_all.append(
            {
                "caption": f"Speed over {against}: a bar is the geometric mean over the attrs of a kernel, the line "
                "goes from the lowest to the highest.",
                "svg": charts.overview(speeds, against),
            }
        )
    if peaks is not None:
        charts_of_all.append(
            {
                "caption": "Roofline: each mark is the pick of one attr. A transcendental function counts as 16 "
                "operations, so kernels of many of them may stand above the line of multiply-adds; arrays that fit "
                "into a cache may stand above the line of memory.",
                "svg": charts.roofline(points, peaks),
            }
        )
    return charts_of_all


def _compared(lines: Sequence[Line]) -> list[str]:
    """Return the timings that serve as baselines for speedups: the reference, and peers."""
    own = {name for line in lines for name in (*line.rivals, line.pick)}
    names = dict.fromkeys(name for line in lines for name in line.timings)
    return [name for name in names if name == FIRST[0] or name not in own]


def _group(name: str, lines: Sequence[Line], points: Sequence[Point]) -> dict[str, Any]:
    """Return a kernel's charts and its table: a row for each line, a column for each timing."""
    names = list(dict.fromkeys(timing for line in lines for timing in line.timings))
    own = [point for point in points if point.line.group == name]
    against = next((baseline for baseline in FIRST if any(baseline in line.timings for line in lines)), "")
    median, late = regrets(lines)
    ratios = [ratio for line in lines if (ratio := line.speed_over(against)) is not None]
    return {
        "name": name,
        "columns": names,
        "extra": list(dict.fromkeys(figure for line in lines for figure in line.figures)),
        "against": against,
        "regret": any(line.rivals for line in lines),
        "rows": [_row(line, names, against) for line in lines],
        "words": f"{geometric_mean(ratios):.2f} times as fast as {against} (geometric mean)" if ratios else "",
        "late": f"regret: median {median:.1%}, 95th percentile {late:.1%}" if median == median else "",
        "charts": _charts(name, own, names, against if ratios else "")
        if own
        else contest_charts.charts_of(name, lines),
    }


def _charts(kernel: str, points: Sequence[Point], names: Sequence[str], against: str) -> list[dict[str, str]]:
    charts_of_kernel = [
        {
            "caption": "Time of a call against the bytes of its arrays.",
            "svg": charts.time_against_size(kernel, points, names),
        }
    ]
    if against:
        caption = f"Each pick, and its speedup over {against}."
        charts_of_kernel.append({"caption": caption, "svg": charts.picks(kernel, points, against)})
    return charts_of_kernel


def _row(line: Line, names: Sequence[str], against: str) -> dict[str, Any]:
    least = min((timing.seconds for timing in line.timings.values()), default=0.0)
    return {
        "case": line.case,
        "pick": line.detail or line.pick,
        "cells": [line.timings.get(name) for name in names],
        "least": least,
        "picked": [name == line.pick for name in names],
        "figures": line.figures,
        "ratio": line.speed_over(against) if against else None,
        "regret": line.regret,
    }


def _changes(before: Run, after: Run) -> Mapping[str, Any]:
    all_changes = list(compare.changes(before, after))
    picks = compare.picks_changed(before, after)
    return {
        "summary": compare.summary(before, after),
        "svg": charts.changed(all_changes) if all_changes else "",
        "rows": [change for change in all_changes if change.kind],
        "picks": [(new.group, new.case, old.detail, new.detail) for old, new in picks],
    }
