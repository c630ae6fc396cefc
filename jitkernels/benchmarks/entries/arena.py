"""``jitkernels bench arena``: memory between kernels beside the least that can be, which is what is needed at once.

Nothing is run: plans are those of functions as they are compiled for such arguments. Programs that need no memory
between kernels have no line.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jitkernels.benchmark import whole_programs
from jitkernels.benchmark.compilers import own_compiler
from jitkernels.benchmark.entries import training
from jitkernels.benchmark.programs import all_programs
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark

ELEMENTS = 100_000
LEVELS = (3, 0)
EQUAL, MOST = 0.8, 1.1
"""How many plans take no more than is needed at once, and how many times that any takes at most."""
Make = Callable[[], tuple[Any, ...]]


def programs() -> dict[str, tuple[Callable[..., Any], Make]]:
    """By their names: functions, and what makes their arguments."""
    found: dict[str, tuple[Callable[..., Any], Make]] = {
        name: (one.function, lambda one=one: one.arguments(ELEMENTS, "float32"))  # type: ignore[misc]
        for name, one in all_programs().items()
    }
    found |= {one.__name__: (one, make) for one, make in whole_programs.PROGRAMS.items()}
    found["training step"] = training.step, lambda: (*training.state(), training.FIRST, *training.batch())
    found["training step by hand"] = training.by_hand, found["training step"][1]
    return found


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = [line.figures["x least"] for line in lines]
    equal = sum(ratio == 1 for ratio in ratios) / len(ratios)
    text = (
        f"{equal:.0%} of {len(ratios)} plans take no more than is needed at once (promised: {EQUAL:.0%}), "
        f"none more than {max(ratios):.3f} times that (promised: {MOST})"
    )
    return Verdict(text, equal >= EQUAL and max(ratios) <= MOST)


def planned(function: Callable[..., Any], arguments: tuple[Any, ...], level: int) -> tuple[int, int]:
    """The bytes of the arena of a function, and those that are needed at once."""
    compiled = own_compiler()(function, opt_level=level)
    compiled.explain(*arguments)
    stats = compiled.stats()
    return stats.arena_bytes, round(stats.arena_bytes * stats.arena_efficiency)


def _names() -> list[str]:
    return [*programs()]


@benchmark("arena", verdict=verdict, parts=_names)
def arena(settings: Settings) -> Iterator[Line]:
    """Memory between kernels of programs at levels 3 and 0, beside what is needed at once."""
    known = programs()
    for level in LEVELS:
        for name in settings.parts or known:
            function, make = known[name]
            taken, least = planned(function, make(), level)
            if taken:
                figures = {"bytes": taken, "needed at once": least, "x least": taken / least}
                yield Line(f"level {level}", name, {}, "", figures=figures)
