"""The charts of the contest: time and error of each contestant against size, alone and side by side."""

from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from jitkernels.benchmarks.report.drawing import drawn, series
from jitkernels.benchmarks.suite import Line
from jitkernels.benchmarks.units import duration, size

Values = Mapping[str, Sequence[tuple[int, float]]]
"""For each contestant, its value at each size."""


def charts_of(group: str, lines: Sequence[Line]) -> list[dict[str, str]]:
    """Return the charts of one table of the contest; none for lines without a size."""
    if not all(line.case.isdecimal() for line in lines):
        return []
    values: dict[str, list[tuple[int, float]]] = {}
    for line in lines:
        own = {name: timing.seconds for name, timing in line.timings.items()} or dict(line.figures)
        for name, value in own.items():
            values.setdefault(name, []).append((int(line.case), value))
    if not values:
        return []
    part = group.partition(", ")[2]
    in_words = _bytes if part == "memory" else _plain if part == "error" else _seconds
    what = part or "time"
    return [
        {"caption": f"{what} of all contestants against size.", "svg": _together(group, what, values, in_words)},
        {"caption": f"{what} of each contestant against size.", "svg": _side_by_side(group, what, values, in_words)},
    ]


def _together(group: str, what: str, values: Values, in_words: Callable[[float], str]) -> str:
    looks = series(list(values))

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        for name, points in values.items():
            axes.plot(*zip(*points, strict=True), label=name, **looks[name])
        _scaled(axes, what, values, in_words)
        figure.legend(loc="outside right upper")

    return drawn(draw, f"{group} together", f"{group}: {what} of {', '.join(values)} against size.", (8.4, 3.6))


def _side_by_side(group: str, what: str, values: Values, in_words: Callable[[float], str]) -> str:
    looks = series(list(values))
    columns = min(len(values), 4)
    rows = -(-len(values) // columns)

    def draw(figure: Figure) -> None:
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, (name, points) in zip(grid, values.items(), strict=False):
            axes.plot(*zip(*points, strict=True), **looks[name])
            _scaled(axes, "", values, in_words)
            axes.set_title(name)
        for axes in grid[len(values) :]:
            axes.set_visible(False)

    return drawn(draw, f"{group} apart", f"{group}: {what} against size, a chart for each.", (8.4, 0.6 + 1.9 * rows))


def _scaled(axes: Axes, what: str, values: Values, in_words: Callable[[float], str]) -> None:
    """Set a logarithmic scale if all values are positive."""
    positive = all(value > 0 for points in values.values() for _, value in points)
    axes.set(xscale="log", yscale="log" if positive else "symlog", xlabel="size", ylabel=what)
    if not positive:
        least = min((value for points in values.values() for _, value in points if value > 0), default=1.0)
        axes.set_yscale("symlog", linthresh=least)
    sizes = sorted({size for points in values.values() for size, _ in points})
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8, rotation=30)
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: in_words(value)))


def _seconds(value: float) -> str:
    return duration(value)


def _bytes(value: float) -> str:
    return size(value)


def _plain(value: float) -> str:
    return f"{value:.2g}"
