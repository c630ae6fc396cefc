"""``jitkernels bench arena``: workspace between kernels compared with its lower bound, the peak of live bytes.

Nothing runs: the memory plans are those of functions compiled for such arguments. Programs without workspace have no
line.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jitkernels as jk
from jitkernels.benchmarks import whole_programs
from jitkernels.benchmarks.entries import training
from jitkernels.benchmarks.programs import all_programs
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark

ARENA_ELEMENTS = 100_000
LEVELS = (3, 0)
EQUAL, PROMISED_ARENA_RATIO = 0.8, 1.1
"""Promised share of plans that reach the peak of live bytes, and the largest ratio to it."""
Make = Callable[[], tuple[Any, ...]]


def programs() -> dict[str, tuple[Callable[..., Any], Make]]:
    """Return functions and their argument factories by name."""
    result: dict[str, tuple[Callable[..., Any], Make]] = {
        name: (program.function, lambda program=program: program.arguments(ARENA_ELEMENTS, "float32"))  # type: ignore[misc]
        for name, program in all_programs().items()
    }
    result |= {program.__name__: (program, make) for program, make in whole_programs.PROGRAMS.items()}
    result["training step"] = training.step, lambda: (*training.state(), training.FIRST, *training.batch())
    result["training step by hand"] = training.by_hand, result["training step"][1]
    return result


def verdict(lines: Sequence[Line]) -> Verdict:
    ratios = [line.figures["x least"] for line in lines]
    equal = sum(ratio == 1 for ratio in ratios) / len(ratios)
    text = (
        f"{equal:.0%} of {len(ratios)} plans reach the peak of live bytes (promised: {EQUAL:.0%}), "
        f"the largest is {max(ratios):.3f} times the peak (promised: {PROMISED_ARENA_RATIO})"
    )
    return Verdict(text, equal >= EQUAL and max(ratios) <= PROMISED_ARENA_RATIO)


def planned(function: Callable[..., Any], arguments: tuple[Any, ...], level: int) -> tuple[int, int]:
    """Return the bytes of a function's arena, and the peak of simultaneously live bytes."""
    compiled = jk.jit(function, opt_level=level)
    compiled.explain(*arguments)
    stats = compiled.stats()
    return stats.arena_bytes, round(stats.arena_bytes * stats.arena_efficiency)


def _names() -> list[str]:
    return [*programs()]


@benchmark("arena", verdict=verdict, parts=_names)
def arena(settings: Settings) -> Iterator[Line]:
    """Workspace between kernels of programs at levels 3 and 0, compared with the peak of live bytes."""
    known = programs()
    for level in LEVELS:
        for name in settings.some_of(known):
            function, make = known[name]
            planned_bytes, least = planned(function, make(), level)
            if planned_bytes:
                figures = {"bytes": planned_bytes, "needed at once": least, "x least": planned_bytes / least}
                yield Line(f"level {level}", name, {}, "", figures=figures)
