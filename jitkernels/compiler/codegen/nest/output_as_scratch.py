"""Materialize expensive values of an early phase in the output's own buffer until the output is stored."""

from typing import Any

from jitkernels.compiler.codegen.nest.phases import Target
from jitkernels.compiler.codegen.nest.value_emitter import Values
from jitkernels.compiler.ir import access_map, op_cost
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.schedule.loop_nest import Nest

STASHED = 10.0
"""The cost, in additions, from which on a value is not recomputed for the same element of a row."""


def scratch_targets(nest: Nest, targets: list[Target], values: Values) -> list[Target]:
    """Choose the values to materialize in the buffers of outputs."""
    results: list[Target] = []
    leaves = {leaf for store in nest.stores for leaf in store.cone.leaves}
    read = {array.word for key, array in values.arrays.items() if key in leaves}
    for target in targets:
        array = target.array
        if array is None or not target.loops or target.phase < 2 or array.word in read:
            continue
        early: dict[Any, int] = {}
        for other in targets:
            if other.reduction is not None and other.phase < target.phase and other.loops == target.loops:
                for value in values.needed(other.node, other.place):
                    early.setdefault(values.key(*value), other.phase)
        reduced = {id(other.reduction[0]) for other in targets if other.reduction is not None}
        chosen = next(
            (
                (node, place)
                for node, place in reversed(values.needed(target.node, target.place, reduced))
                if values.key(node, place) in early
                and op_cost.own_cost(node) >= STASHED
                and node.dtype == array.dtype
                and access_map.key_of(place) == access_map.key_of(target.place)
                and id(node) not in values.arrays
                and _is_last(node, place, target, reduced, values)
            ),
            None,
        )
        if chosen is not None:
            phase = early[values.key(*chosen)]
            results.append(Target(*chosen, phase, target.loops, array=array))
    return results


def _is_last(node: Node, place: IndexMap, target: Target, reduced: set[int], values: Values) -> bool:
    """Return whether the target reads none of the node's inputs besides: they may alias the output's buffer."""

    def arrays(pairs: list[tuple[Node, IndexMap]]) -> set[int]:
        return {id(leaf) for leaf, _ in pairs if id(leaf) in values.arrays}

    rest = values.needed(target.node, target.place, {*reduced, id(node)})
    return not arrays(values.needed(node, place, reduced)) & arrays(rest)
