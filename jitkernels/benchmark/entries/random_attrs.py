"""``jitkernels bench random-attrs``: is the pick right for attrs that nobody measured? Run `jitkernels tune` before."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from jitkernels.attrs.base import KernelAttr
from jitkernels.benchmark import table
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.errors import AttrError

COUNT = {"ci": 60, "full": 300}
MEDIAN, LATE = 0.02, 0.10
MOST_BYTES, MOST_OPERATIONS = 1 << 26, 5e8
SEED = 20


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = [(ratio, line) for line in lines if (ratio := line.speed_over("refer")) is not None]
    slower = [line for ratio, line in ratios if ratio < 1]
    median, late = table.regrets(lines)
    lowest = min(ratios, key=lambda pair: pair[0])[1]
    return Verdict(
        f"{len(lines)} random attrs: pick {table.speeds(lines, 'refer')} ({lowest.group} {lowest.case}), "
        f"{len(slower)} slower (promised: none); regret: median {median:.1%} (promised: {MEDIAN:.0%}), "
        f"95th percentile {late:.1%} (promised: {LATE:.0%})",
        not slower and median <= MEDIAN and late <= LATE,
    )


@benchmark("random-attrs", verdict=verdict, against="refer")
def random_attrs(settings: Settings) -> Iterator[Line]:
    """60 attrs (tag full: 300) outside the sweeps, drawn evenly from the rows: pick, regret."""
    generator = np.random.default_rng(SEED)
    each = -(-COUNT[settings.tag] // len(settings.rows))
    for row in settings.rows:
        for attr in attrs_between(row, each, generator):
            yield table.settled(partial(_look, attr, settings), "refer")


def _look(attr: KernelAttr, settings: Settings, turn: int) -> Line:
    return table.line(attr, attr.text(), peers=settings.peers, seconds=settings.seconds, turn=turn)


def attrs_between(row: type[KernelAttr], count: int, generator: np.random.Generator) -> list[KernelAttr]:
    """Attrs that the sweep does not have: its own with every extent drawn anew within the range it has there."""
    known = [case.attr for case in row.sweep() if "full" in case.tags]
    extents = [name for name, value in known[0].fields().items() if type(value) is int]
    ranges = {name: _range([int(attr.fields()[name]) for attr in known]) for name in extents}
    found: dict[KernelAttr, None] = {}
    for _ in range(1000 * count):
        if len(found) == count:
            break
        model = known[int(generator.integers(len(known)))]
        drawn = {name: round(math.exp(generator.uniform(*limits))) for name, limits in ranges.items()}
        try:
            attr = dataclasses.replace(model, **drawn)  # type: ignore[type-var]  # attrs are dataclasses
        except AttrError:
            continue
        size = sum(array.nbytes for array in attr.signature().arrays)
        if attr not in known and size <= MOST_BYTES and attr.operations() <= MOST_OPERATIONS:
            found[attr] = None
    return list(found)


def _range(values: Sequence[int]) -> tuple[float, float]:
    """The logarithms of the least and the greatest extent, 1 at least."""
    return math.log(max(1, min(values))), math.log(max(1, *values))
