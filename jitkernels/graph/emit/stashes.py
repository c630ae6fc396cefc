"""What is kept of an early phase for a later one: in the row of the result that it ends in, which is in the cache."""

from typing import Any

from jitkernels.graph import cones
from jitkernels.graph.emit.targets import Target, Targets

STASHED = 10.0
"""What takes as many additions is not computed again for the same element of a row."""


def stashes_of(nest: Targets) -> list[Target]:
    """What takes long in an early phase and is needed again where a root is stored: kept in the root's own array."""
    found: list[Target] = []
    read = {array.word for array in nest.values.arrays.values()}
    for target in nest.targets:
        array = target.array
        if array is None or not target.loops or target.phase < 2 or array.word in read:
            continue
        early: dict[Any, int] = {}
        for other in nest.targets:
            if other.reduction is not None and other.phase < target.phase and other.loops == target.loops:
                for pair in nest.values.needed(other.node, other.place):
                    early.setdefault(nest.values.key(*pair), other.phase)
        chosen = next(
            (
                (node, place)
                for node, place in reversed(nest.values.needed(target.node, target.place))
                if nest.values.key(node, place) in early
                and cones.own_cost(node) >= STASHED
                and node.dtype == array.dtype
                and cones.key_of(place) == cones.key_of(target.place)
                and id(node) not in nest.values.arrays
            ),
            None,
        )
        if chosen is not None:
            phase = early[nest.values.key(*chosen)]
            found.append(Target(*chosen, phase, target.loops, array=array))
    return found
