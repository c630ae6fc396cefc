"""``jitkernels bench keywords``: an option by keyword against the same option by position."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import time_calls
from jitkernels.peers import ordinary_calls_of

LIMIT = 100e-9


def verdict(lines: Sequence[Line]) -> Verdict:
    extra = {line.group: _extra({name: t.seconds for name, t in line.timings.items()}) for line in lines}
    if not extra:
        return Verdict("no everyday function has options")
    worst = max(extra, key=lambda name: extra[name])
    return Verdict(
        f"options by keyword cost at most {extra[worst] * 1e9:.0f} ns more ({worst}; promised: {LIMIT * 1e9:.0f} ns)",
        extra[worst] <= LIMIT,
    )


def _extra(seconds: dict[str, float]) -> float:
    """What the keyword costs above the quicker of the positional calls."""
    return seconds["keyword"] - min(seconds["position"], seconds["position, out="])


@benchmark("keywords", verdict=verdict)
def keywords(settings: Settings) -> Iterator[Line]:
    """Every option and out by keyword against all of them by position, 64 elements."""
    for row in settings.rows:
        name = row.kernel_type.name.lower()
        plain = next(iter(ordinary_calls_of(row, 64)), None)
        parameters = row.parameters().parameters
        options = {key: p.default for key, p in parameters.items() if p.default not in (p.empty, None)}
        if plain is None or not options:
            continue
        function = getattr(jk, name)
        result = function(*plain.arguments)
        out = tuple(map(np.zeros_like, result)) if isinstance(result, tuple) else np.zeros_like(result)
        left_out: list[Any] = [None] * (len(parameters) - len(options) - len(plain.arguments))
        calls = {
            "keyword": partial(function, *plain.arguments, **options, out=out),
            "position": partial(function, *plain.arguments, *left_out, *options.values(), out),
            "position, out=": partial(function, *plain.arguments, *left_out, *options.values(), out=out),
        }
        yield Line(name, ", ".join(options), time_calls(calls, seconds=4 * settings.seconds), "keyword")
