"""``jitkernels bench ordinary-calls``: everyday functions against NumPy's own, in all the forms that users pass."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import geometric_mean, settled, time_calls
from jitkernels.peers import equivalent_of, ordinary_calls_of

ELEMENTS = (8, 960)
LEAST, MEAN = 1.0, 2.0
SECONDS = 0.2
"""Share of the seconds of a line that a call gets: there are hundreds, all short."""


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = {f"{line.group} {line.case}": line.speed_over("numpy") or 0.0 for line in lines}
    if not ratios:
        return Verdict("no call has an equivalent")
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < LEAST)
    mean, (least, worst) = geometric_mean(list(ratios.values())), min((r, n) for n, r in ratios.items())
    return Verdict(
        f"{len(ratios)} ordinary calls: geometric mean {mean:.2f} times NumPy's speed (promised: {MEAN}), lowest "
        f"{least:.2f} ({worst}), {len(slower)} slower than NumPy (promised: none)",
        not slower and mean >= MEAN,
    )


@benchmark("ordinary-calls", verdict=verdict, against="numpy")
def ordinary_calls(settings: Settings) -> Iterator[Line]:
    """Every everyday function against NumPy's equivalent: forms, dtypes, broadcasts, axes, every kind of out."""
    for row in settings.rows:
        numpy, name = equivalent_of(row), row.kernel_type.name.lower()
        if numpy is None:
            continue
        for elements in ELEMENTS:
            pairs = zip(ordinary_calls_of(row, elements), ordinary_calls_of(row, elements), strict=True)
            for own, other in pairs:
                calls = {
                    "jitkernels": partial(getattr(jk, name), *own.arguments, **own.named),
                    "numpy": partial(numpy, *other.arguments, **other.named),
                }
                form = f"{elements} elements, {own.form}"
                with np.errstate(all="ignore"):
                    calls["jitkernels"]()
                    line = settled(partial(_line, name, form, calls, SECONDS * settings.seconds), "numpy")
                yield line


def _line(
    name: str, form: str, calls: Mapping[str, partial[Any]], seconds: float, turn: int
) -> Line:  # the arrays are those of the call
    return Line(name, form, time_calls(calls, seconds=seconds, rounds=(3, 15)), "jitkernels")
