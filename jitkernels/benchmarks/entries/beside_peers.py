"""``jitkernels bench beside-peers [KERNEL ...]``: the selection against NumPy and the best peer at common sizes.

For each schema, dtype and set of options, the sweep's attrs nearest to a tiny, a small, a middle and a large size are
timed; results near or behind the best are measured again, with arrays elsewhere in memory. Libraries wrapped as
implementations also count as peers. Run `jitkernels tune` before.
"""

import math
from collections.abc import Iterator, Sequence

from jitkernels.attrs.schema.base import Case, KernelAttr
from jitkernels.benchmarks import table
from jitkernels.benchmarks.peers import threads
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark

ELEMENTS = {TINY_TAG: (8,), "ci": (8,), "full": (8, 1000, 100_000, 1_000_000)}
"""Total of all arrays of an attr."""
MAX_SIZE_RATIO = 6
"""Largest ratio, in either direction, of a case to the size it represents."""
LIBRARIES = ("mkl", "openblas", "onednn")
OVER_NUMPY, PROMISED_SLOWDOWN = 4.0, 1.1
"""Promised mean speedup over NumPy, and the promised largest slowdown against the best peer."""
MAX_CASE_OPERATIONS = 4e9


def behind(lines: Sequence[Line]) -> list[tuple[float, Line]]:
    """Return the selections slower than the best peer beyond the promised margin, with their ratios, worst first."""
    ratios = ((line.speed_over(line.best_other), line) for line in lines)
    late = ((ratio, line) for ratio, line in ratios if ratio is not None and ratio < 1 / PROMISED_SLOWDOWN)
    return sorted(late, key=lambda entry: entry[0])


def verdict(lines: Sequence[Line]) -> Verdict:
    schemas: dict[str, list[float]] = {}
    for line in lines:
        if (speed := line.speed_over("numpy")) is not None:
            schemas.setdefault(line.group, []).append(speed)
    of_rows = {name: table.geometric_mean(ratios) for name, ratios in schemas.items()}
    mean = table.geometric_mean([*of_rows.values()])
    late = behind(lines)
    ahead = [ratio for line in lines if (ratio := line.speed_over(line.best_other)) is not None]
    summary = (
        f"{len(lines)} attrs of {len(of_rows)} schemas: over NumPy {mean:.2f}, geometric mean of schemas (promised: "
        f"{OVER_NUMPY:.0f}); over the best other {table.geometric_mean(ahead):.2f}, {len(late)} behind by more than "
        f"{PROMISED_SLOWDOWN - 1:.0%} (promised: none)"
    )
    text = [summary, *(f"  {ratio:.2f} of {line.best_other}: {line.group} {line.case}" for ratio, line in late)]
    return Verdict("\n".join(text), mean >= OVER_NUMPY and not late)


@benchmark("beside-peers", verdict=verdict, against="numpy")
def beside_peers(settings: Settings) -> Iterator[Line]:
    """Every schema at 8 to 10^6 elements (tag ci: 8 only): the selection, NumPy and all installed peers."""
    threads.limit(settings.threads)
    for schema in settings.schemas:
        for case in settings.limited(spread(schema, ELEMENTS[settings.tag])):
            yield table.settled(_Looks(case, settings.seconds), None)


def spread(schema: type[KernelAttr], sizes: Sequence[int]) -> list[Case]:
    """Return the sweep's cases nearest to these sizes, for each set of unit extents and of non-size fields."""
    groups: dict[tuple[object, ...], dict[Case, float]] = {}
    for case in schema.sweep():
        elements = sum(math.prod(array.shape) for array in case.attr.signature().arrays)
        if "full" in case.tags and elements and case.attr.operations() <= MAX_CASE_OPERATIONS:
            single = tuple(extent == 1 for extent in case.attr.extents().values())
            groups.setdefault((case.attr.without_extents, single), {})[case] = math.log(elements)
    chosen: dict[Case, None] = {}
    for group in groups.values():
        for size in sizes:
            distances = {case: abs(mean_log - math.log(size)) for case, mean_log in group.items()}
            nearest = min(distances, key=lambda case: distances[case])
            if distances[nearest] <= math.log(MAX_SIZE_RATIO):
                chosen[nearest] = None
    return list(chosen)


class _Looks:
    """Repeated measurements of a case; peers that are far behind in the first one are not measured again."""

    def __init__(self, case: Case, seconds: float) -> None:
        self._case, self._seconds = case, seconds
        self._slow: list[str] = []

    def __call__(self, turn: int) -> Line:
        attr, name = self._case.attr, self._case.name
        line = table.line(attr, name, peers=True, seconds=self._seconds, turn=turn, only=LIBRARIES, without=self._slow)
        if turn == 0:
            slow = table.CLOSE**2 * line.timings[line.pick].seconds
            self._slow = [name for name, timing in line.timings.items() if timing.seconds > slow]
        return line
