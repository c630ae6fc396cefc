"""What takes long in an early phase and is needed again where a root is stored: it is kept in the root's own array."""

from typing import Any

from jitkernels.graph import cones
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.targets import Target
from jitkernels.graph.emit.values import Values
from jitkernels.graph.ir import Node
from jitkernels.graph.nests import Nest

STASHED = 10.0
"""What takes as many additions is not computed again for the same element of a row."""


def stashes(nest: Nest, targets: list[Target], values: Values) -> list[Target]:
    """What is kept in the array of a root until that is stored."""
    found: list[Target] = []
    leaves = {leaf for store in nest.stores for leaf in store.cone.leaves}
    read = {array.word for key, array in values.arrays.items() if key in leaves}
    for target in targets:
        array = target.array
        if array is None or not target.loops or target.phase < 2 or array.word in read:
            continue
        early: dict[Any, int] = {}
        for other in targets:
            if other.reduction is not None and other.phase < target.phase and other.loops == target.loops:
                for pair in values.needed(other.node, other.place):
                    early.setdefault(values.key(*pair), other.phase)
        reduced = {id(other.reduction[0]) for other in targets if other.reduction is not None}
        chosen = next(
            (
                (node, place)
                for node, place in reversed(values.needed(target.node, target.place, reduced))
                if values.key(node, place) in early
                and cones.own_cost(node) >= STASHED
                and node.dtype == array.dtype
                and cones.key_of(place) == cones.key_of(target.place)
                and id(node) not in values.arrays
                and _is_last(node, place, target, reduced, values)
            ),
            None,
        )
        if chosen is not None:
            phase = early[values.key(*chosen)]
            found.append(Target(*chosen, phase, target.loops, array=array))
    return found


def _is_last(node: Node, place: IndexMap, target: Target, reduced: set[int], values: Values) -> bool:
    """Whether nothing that a node reads is read for the target besides: that may be the root's own array."""

    def arrays(pairs: list[tuple[Node, IndexMap]]) -> set[int]:
        return {id(one) for one, _ in pairs if id(one) in values.arrays}

    rest = values.needed(target.node, target.place, {*reduced, id(node)})
    return not arrays(values.needed(node, place, reduced)) & arrays(rest)
