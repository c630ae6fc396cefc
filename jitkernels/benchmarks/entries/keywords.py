"""``jitkernels bench keywords``: an option by keyword against the same option by position."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

import jitkernels as jk
from jitkernels.benchmarks.peers import ordinary_calls_of
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmarks.table import time_calls

PROMISED_KEYWORD_SECONDS = 100e-9


def verdict(lines: Sequence[Line]) -> Verdict:
    extra = {line.group: _extra({name: t.seconds for name, t in line.timings.items()}) for line in lines}
    if not extra:
        return Verdict("no everyday function has options")
    worst = max(extra, key=lambda name: extra[name])
    return Verdict(
        f"options by keyword cost at most {extra[worst] * 1e9:.0f} ns more ({worst}; promised: "
        f"{PROMISED_KEYWORD_SECONDS * 1e9:.0f} ns)",
        extra[worst] <= PROMISED_KEYWORD_SECONDS,
    )


def _extra(seconds: dict[str, float]) -> float:
    """Return what the keyword costs beyond the faster of the positional calls."""
    return seconds["keyword"] - min(seconds["position"], seconds["position, out="])


@benchmark("keywords", verdict=verdict)
def keywords(settings: Settings) -> Iterator[Line]:
    """Every option and out by keyword against all of them by position, 64 elements."""
    for schema in settings.schemas:
        name = schema.kernel_type.name.lower()
        plain = next(iter(ordinary_calls_of(schema, 64)), None)
        if plain is None:
            continue
        bound = schema.parameters().bind(*plain.arguments, **plain.named)
        bound.apply_defaults()
        by_position = len(plain.arguments)
        options = {key: value for key, value in [*bound.arguments.items()][by_position:] if value is not None}
        if not options:
            continue
        function = getattr(jk, name)
        result = plain.bind(function)()
        out = tuple(map(np.zeros_like, result)) if isinstance(result, tuple) else np.zeros_like(result)
        calls = {
            "keyword": partial(function, *plain.arguments, **options, out=out),
            "position": partial(function, *bound.args, out),
            "position, out=": partial(function, *bound.args, out=out),
        }
        yield Line(name, ", ".join(options), time_calls(calls, seconds=4 * settings.seconds), "keyword")
