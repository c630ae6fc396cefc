"""What was found of a loop when it was traced before, in a round of the loop around it: there the next trace begins.

The rounds of the loop around are traced with ever more general values, so what a loop carries in one of them it carries
in those that follow. Without this, loops in loops would be traced twice for each depth. Bounds are hopes only, which
each trace looks at itself.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from jitkernels.frontends.flow.state import Kind
from jitkernels.frontends.storage import Storage
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import is_moving
from jitkernels.graph.ir import serial

MOST_TRACED = 4000
"""Rounds of loops that one trace may have in all: some seconds."""


class Facts(NamedTuple):
    """What a loop carries: kinds of variables, bounds of ints, storages, and variables that are other arrays."""

    kinds: tuple[Kind, ...]
    bounds: dict[int, Any]
    storages: tuple[Storage, ...]
    rebound: tuple[int, ...]
    own: tuple[bool, ...]


@dataclass
class Around:
    """A loop that is being traced: since when, the round that is, and how many loops this had so far."""

    since: int
    round: int
    inner: int = 0


class Position:
    """Where a loop stands in a trace: the loops around it, and how many there were before it in their rounds."""

    def __init__(self, tracer: Tracer, line: int, names: tuple[str, ...]) -> None:
        self.tracer = tracer
        self.since = serial()
        if not tracer.around:
            tracer.around.append(Around(0, 0))
        tracer.around[-1].inner += 1
        self.path = (*(one.inner for one in tracer.around), line, names)

    def __enter__(self) -> Self:
        """A round of the loop."""
        self.tracer.traced += 1
        if self.tracer.traced > MOST_TRACED:
            raise UnknownError("loops in loops, whose variables have other types or bounds in each round")
        self.tracer.around.append(Around(self.since, serial()))
        return self

    def __exit__(self, *_: object) -> None:
        self.tracer.around.pop()

    def recall(self) -> Facts | None:
        """What was found before, if the loop was traced."""
        facts: Facts | None = self.tracer.found.get(self.path)
        if facts is None:
            return None
        return facts._replace(storages=tuple(filter(self._is_there, facts.storages)))

    def _is_there(self, storage: Storage) -> bool:
        """Whether a storage is none of those that rounds have made which were undone."""
        return not any(one.since < storage.born < one.round for one in self.tracer.around)

    def remember(self, facts: Facts) -> None:
        """Keep what was found for the next round of the loop around."""
        fixed = {place: ends for place, ends in facts.bounds.items() if not any(map(is_moving, ends))}
        self.tracer.found[self.path] = facts._replace(bounds=fixed)
