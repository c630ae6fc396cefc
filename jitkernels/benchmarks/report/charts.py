"""The charts of a run: time against size, speedup of the selections, the roofline, and changes between two runs."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from jitkernels.benchmarks.compare import Change
from jitkernels.benchmarks.report.drawing import FAINT, INK, SERIES, drawn, series
from jitkernels.benchmarks.report.points import Point
from jitkernels.benchmarks.table import geometric_mean
from jitkernels.benchmarks.units import duration, size
from jitkernels.tuning.peaks import Peaks

BAR = 0.26
"""Inches of one bar."""
MAX_BARS = 60


def time_against_size(kernel: str, points: Sequence[Point], names: Sequence[str]) -> str:
    """Draw seconds of each implementation and peer over the bytes of the arrays; one chart for each dtype."""
    dtypes = list(dict.fromkeys(point.dtype for point in points))
    looks = series(names)

    def draw(figure: Figure) -> None:
        axes = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
        for axis, dtype in zip(axes, dtypes, strict=True):
            for name in names:
                found = sorted(
                    (max(point.nbytes, 1), point.line.timings[name].seconds)
                    for point in points
                    if point.dtype == dtype and name in point.line.timings
                )
                if found:
                    axis.plot(*zip(*found, strict=True), label=name, **looks[name])
            axis.set(xscale="log", yscale="log", title=dtype, xlabel="bytes of the arrays")
            axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(int(value))))
            axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: duration(value)))
        axes[0].set_ylabel("time of a call")
        handles = {h.get_label(): h for axis in axes for h in axis.get_legend_handles_labels()[0]}
        figure.legend(handles=list(handles.values()), loc="outside right upper")

    text = f"Time of a call of {kernel} against the bytes of its arrays, for {', '.join(names)}."
    return drawn(draw, f"time-{kernel}", text, (8.4, 3.4))


def picks(kernel: str, points: Sequence[Point], against: str) -> str:
    """Draw a bar for each attr: the speedup of its selection over `against`, coloured by implementation."""
    shown = [point for point in points if point.line.speed_over(against) is not None][:MAX_BARS]
    names = sorted({point.line.detail for point in shown})
    looks = series(names)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name in names:
            indices = [i for i, point in enumerate(shown) if point.line.detail == name]
            speeds = [shown[i].line.speed_over(against) or 1.0 for i in indices]
            axes.barh(
                indices,
                [speed - 1 for speed in speeds],
                0.7,
                left=1,
                label=f"{name} picked",
                color=looks[name]["color"],
            )
        axes.set(xscale="log", xlabel=f"times as fast as {against}", ylim=(len(shown) - 0.4, -0.6))
        axes.set_yticks(range(len(shown)), [point.line.case for point in shown], fontsize=8)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.axvline(1, color=INK, linewidth=1)
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper left", ncols=4)

    text = f"For each attr of {kernel}, the speedup of the pick over {against}."
    return drawn(draw, f"picks-{kernel}", text, (8.4, 1.1 + BAR * len(shown)))


def roofline(points: Sequence[Point], peaks: Peaks) -> str:
    """Draw operations per second over arithmetic intensity, below the machine's peak rates."""
    dtypes = [dtype for dtype in peaks.operations if any(point.dtype == dtype for point in points)]
    looks = series([*dtypes])

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        low = min(point.intensity for point in points) / 2
        high = max(max(point.intensity for point in points) * 2, 1e3)
        for dtype in dtypes:
            peak, ridge = peaks.operations[dtype], peaks.operations[dtype] / peaks.bandwidth
            axes.plot([low, ridge, max(high, ridge)], [low * peaks.bandwidth, peak, peak], color=looks[dtype]["color"])
            note = f"{dtype}: {peak / 1e9:.0f} GFLOP/s"
            axes.annotate(note, (high, peak), ha="right", va="bottom", fontsize=8, color=INK)
            own = [point for point in points if point.dtype == dtype]
            speeds = [point.operations / point.line.timings[point.line.pick].seconds for point in own]
            axes.plot([point.intensity for point in own], speeds, linestyle="", label=dtype, **looks[dtype])
        at = math.sqrt(low)
        axes.annotate(
            f"triad: {peaks.bandwidth / 1e9:.1f} GB/s", (at, at * peaks.bandwidth), ha="right", va="bottom", fontsize=8
        )
        axes.set(xscale="log", yscale="log", xlabel="operations per byte of the arrays", ylabel="operations a second")
        axes.legend(loc="lower right")

    text = f"Roofline: operations per second of each pick below the measured limits of {peaks.threads} threads."
    return drawn(draw, "roofline", text, (8.4, 4.4))


def overview(speeds: Mapping[str, Sequence[float]], against: str) -> str:
    """Draw a bar for each kernel: the geometric mean speedup of the selections, with its range."""
    names = sorted(speeds, key=lambda name: -geometric_mean(speeds[name]))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        means = [geometric_mean(speeds[name]) for name in names]
        axes.barh(range(len(names)), [mean - 1 for mean in means], 0.7, left=1, color=SERIES[0])
        for i, name in enumerate(names):
            axes.plot([min(speeds[name]), max(speeds[name])], [i, i], color=INK, linewidth=1)
        _named_bars(axes, names)
        axes.set_xlabel(f"times as fast as {against}: mean, lowest to highest")

    text = f"Speedup of the picks of each kernel over {against}: geometric mean, lowest and highest."
    return drawn(draw, f"overview-{against}", text, (8.4, 1.1 + BAR * len(names)))


def changed(changes: Sequence[Change]) -> str:
    """Draw a mark for each timing of two runs, by the speedup of the later one."""
    kernels = list(dict.fromkeys(change.group for change in changes))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for kind, colour in (("", FAINT), ("faster", SERIES[2]), ("slower", SERIES[1])):
            own = [change for change in changes if change.kind == kind]
            indices = [kernels.index(change.group) for change in own]
            label = kind or "within noise"
            axes.plot([change.ratio for change in own], indices, "|", color=colour, label=label, markersize=9)
        _named_bars(axes, kernels)
        axes.set_xlabel("times as fast as before")
        figure.legend(loc="outside upper left", ncols=3)

    text = "For each timing of both runs, the speedup of the later one."
    return drawn(draw, "changes", text, (8.4, 1.1 + BAR * len(kernels)))


def _named_bars(axes: Axes, names: Sequence[str]) -> None:
    axes.set(xscale="log", ylim=(len(names) - 0.4, -0.6))
    axes.set_yticks(range(len(names)), names)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.axvline(1, color=INK, linewidth=1)
    axes.grid(visible=False, axis="y")
