"""``jitkernels bench beside-peers [KERNEL ...]``: the pick against NumPy and the best of others, at sizes people use.

Of each row, dtype and set of options the attrs of the sweep are timed that lie nearest to a tiny, a small, a middle
and a large size; what comes out near or behind the best is looked at again, with arrays elsewhere in memory. Libraries
that are implementations of ours count among the others as well. Run `jitkernels tune` before.
"""

import math
from collections.abc import Iterator, Sequence

from jitkernels.attrs.base import Case, KernelAttr
from jitkernels.benchmark import table
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.peers import threads

ELEMENTS = {"ci": (8,), "full": (8, 1000, 100_000, 1_000_000)}
"""Of all arrays of an attr together."""
FAR = 6
"""Times that a case may be smaller or larger than the size it stands for."""
LIBRARIES = ("mkl", "openblas", "onednn")
OVER_NUMPY, BEHIND = 4.0, 1.1
"""What is promised over NumPy, as a mean, and how many times slower than the best other a pick may be."""
MOST_OPERATIONS = 4e9


def behind(lines: Sequence[Line]) -> list[tuple[float, Line]]:
    """The picks that are behind the best other by more than is promised, and how far, the worst first."""
    ratios = ((line.speed_over(line.best_other), line) for line in lines)
    late = ((ratio, line) for ratio, line in ratios if ratio is not None and ratio < 1 / BEHIND)
    return sorted(late, key=lambda one: one[0])


def verdict(lines: Sequence[Line]) -> Verdict:
    rows: dict[str, list[float]] = {}
    for line in lines:
        if (speed := line.speed_over("numpy")) is not None:
            rows.setdefault(line.group, []).append(speed)
    of_rows = {name: table.geometric_mean(found) for name, found in rows.items()}
    mean = table.geometric_mean([*of_rows.values()])
    late = behind(lines)
    ahead = [ratio for line in lines if (ratio := line.speed_over(line.best_other)) is not None]
    summary = (
        f"{len(lines)} attrs of {len(of_rows)} rows: over NumPy {mean:.2f}, geometric mean of rows (promised: "
        f"{OVER_NUMPY:.0f}); over the best other {table.geometric_mean(ahead):.2f}, {len(late)} behind by more than "
        f"{BEHIND - 1:.0%} (promised: none)"
    )
    text = [
        summary,
        *(f"  {ratio:.2f} of {line.best_other}: {line.group} {line.case}" for ratio, line in late),
    ]
    return Verdict("\n".join(text), mean >= OVER_NUMPY and not late)


@benchmark("beside-peers", verdict=verdict, against="numpy")
def beside_peers(settings: Settings) -> Iterator[Line]:
    """Every row at 8 to 10^6 elements (tag ci: 8 only): the pick, NumPy and all others that are installed."""
    threads.limit(settings.threads)
    for row in settings.rows:
        for case in spread(row, ELEMENTS[settings.tag]):
            yield table.settled(_Looks(case, settings.seconds), None)


def spread(row: type[KernelAttr], sizes: Sequence[int]) -> list[Case]:
    """The cases of the sweep nearest to these sizes, for each set of extents that are 1 and of fields that are none."""
    groups: dict[tuple[object, ...], dict[Case, float]] = {}
    for case in row.sweep():
        elements = sum(math.prod(array.shape) for array in case.attr.signature().arrays)
        if "full" in case.tags and elements and case.attr.operations() <= MOST_OPERATIONS:
            single = tuple(extent == 1 for extent in case.attr.extents().values())
            groups.setdefault((case.attr.without_extents, single), {})[case] = math.log(elements)
    chosen: dict[Case, None] = {}
    for group in groups.values():
        for size in sizes:
            distances = {case: abs(found - math.log(size)) for case, found in group.items()}
            nearest = min(distances, key=lambda case: distances[case])
            if distances[nearest] <= math.log(FAR):
                chosen[nearest] = None
    return list(chosen)


class _Looks:
    """Lines of a case, one for each turn; peers that were far behind in the first take part in no other."""

    def __init__(self, case: Case, seconds: float) -> None:
        self._case, self._seconds = case, seconds
        self._slow: list[str] = []

    def __call__(self, turn: int) -> Line:
        attr, name = self._case.attr, self._case.name
        line = table.line(
            attr, name, peers=True, seconds=self._seconds, turn=turn, only=LIBRARIES, without=self._slow
        )
        if turn == 0:
            slow = table.CLOSE**2 * line.timings[line.pick].seconds
            self._slow = [name for name, timing in line.timings.items() if timing.seconds > slow]
        return line
