"""``jitkernels bench random-attrs``: regret of the selection for unmeasured attrs. Run `jitkernels tune` before."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.benchmarks import table
from jitkernels.benchmarks.suite import TINY_TAG, Line, Settings, Verdict, benchmark
from jitkernels.errors import AttrError

COUNT = {TINY_TAG: 1, "ci": 60, "full": 500}
"""Attrs over all requested schemas, at least one of each."""
MEDIAN, LATE = 0.02, 0.10
MAX_ATTR_BYTES, MAX_ATTR_OPERATIONS = 1 << 26, 5e8
ATTRS_SEED = 20
Draw = Callable[[np.random.Generator], Any]


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = [(ratio, line) for line in lines if (ratio := line.speed_over("refer")) is not None]
    slower = [line for ratio, line in ratios if ratio < 1]
    median, late = table.regrets(lines)
    lowest = min(ratios, key=lambda pair: pair[0])[1]
    found = (
        f"{len(lines)} random attrs: pick {table.speeds(lines, 'refer')} ({lowest.group} {lowest.case}), "
        f"{len(slower)} slower (promised: none); regret: median {median:.1%} (promised: {MEDIAN:.0%}), "
        f"95th percentile {late:.1%} (promised: {LATE:.0%})"
    )
    return Verdict("\n".join([found, *_faults(lines)]), not slower and median <= MEDIAN and late <= LATE)


def _faults(lines: Sequence[Line]) -> Iterator[str]:
    """Return a line for each kernel that misses its promise: its regrets, and attrs for which refer is faster."""
    for group, of_row in itertools.groupby(lines, key=lambda line: line.group):
        own = list(of_row)
        slower = [(ratio, line) for line in own if (ratio := line.speed_over("refer")) is not None and ratio < 1]
        worst = max(own, key=lambda line: line.regret or 0.0)
        if slower or (worst.regret or 0.0) > LATE:
            median, late = table.regrets(own)
            behind = "; ".join(f"{line.case}: {ratio:.2f} of refer" for ratio, line in slower)
            yield (
                f"{group}: of {len(own)} attrs regret median {median:.1%}, 95th percentile {late:.1%}, worst "
                f"{worst.regret or 0.0:.1%} ({worst.case}), {len(slower)} slower{': ' if behind else ''}{behind}"
            )


@benchmark("random-attrs", verdict=verdict, against="refer")
def random_attrs(settings: Settings) -> Iterator[Line]:
    """60 attrs (tag full: 500) outside the sweeps, drawn evenly from the schemas: selection, regret."""
    generator = np.random.default_rng(ATTRS_SEED)
    count, schema_count = COUNT[settings.tag], len(settings.schemas)
    for number, schema in enumerate(settings.schemas):
        share = count * (number + 1) // schema_count - count * number // schema_count
        for attr in attrs_between(schema, max(1, share), generator):
            yield table.settled(partial(_look, attr, settings), "refer")


def _look(attr: KernelAttr, settings: Settings, turn: int) -> Line:
    return table.line(attr, attr.text(), peers=settings.peers, seconds=settings.seconds, turn=turn)


def attrs_between(schema: type[KernelAttr], count: int, generator: np.random.Generator) -> list[KernelAttr]:
    """Return attrs outside the sweep: every field is drawn from the values that the schema allows."""
    known = [case.attr for case in schema.sweep() if "full" in case.tags]
    draws = {name: _draw_of(schema, name, [attr.fields()[name] for attr in known]) for name in schema.known_fields()}
    drawn: dict[KernelAttr, None] = {}
    for _ in range(10_000 * count):
        if len(drawn) == count:
            break
        try:
            attr = schema(**{name: draw(generator) for name, draw in draws.items()})
        except AttrError:
            continue
        size = sum(array.nbytes for array in attr.signature().arrays)
        if attr not in known and size <= MAX_ATTR_BYTES and attr.operations() <= MAX_ATTR_OPERATIONS:
            drawn[attr] = None
    return list(drawn)


def _draw_of(schema: type[KernelAttr], name: str, known: Sequence[Any]) -> Draw:
    """Return how to draw a field: integers in the range of the sweep, other fields from allowed or swept values."""
    field = schema.known_fields()[name]
    if field.is_integer:
        least, most = max(1, min(known)), max(1, *known)
        return lambda generator: round(math.exp(generator.uniform(math.log(least), math.log(most))))
    values = field.values or tuple(dict.fromkeys(known))
    return lambda generator: values[int(generator.integers(len(values)))]
