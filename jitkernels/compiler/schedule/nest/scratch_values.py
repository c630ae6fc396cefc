"""Materialize expensive values of an early phase in the output's own buffer until the output is stored."""

from typing import Any

from jitkernels.compiler.ir import access_map, ops
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.nest_values import NestValues

STASHED = 10.0
"""The cost, in additions, from which on a value is not recomputed for the same element of a row."""


def choose_scratch_values(nest: LoopNest, targets: list[NestTarget], values: NestValues) -> list[NestTarget]:
    """Choose the values to materialize in the buffers of outputs."""
    results: list[NestTarget] = []
    read = {values.arrays[leaf].word for leaf in nest.leaves if leaf in values.arrays}
    for target in targets:
        array = target.array
        if array is None or not target.loops or target.phase < 2 or array.word in read:
            continue
        early: dict[Any, int] = {}
        for other in targets:
            if other.reduction is not None and other.phase < target.phase and other.loops == target.loops:
                for value in values.needed(other.node, other.index_map):
                    early.setdefault(values.key(*value), other.phase)
        reduced = {other.reduction[0] for other in targets if other.reduction is not None}
        chosen = next(
            (
                (node, index_map)
                for node, index_map in reversed(values.needed(target.node, target.index_map, reduced))
                if values.key(node, index_map) in early
                and ops.own_cost(node) >= STASHED
                and node.dtype == array.dtype
                and access_map.key_of(index_map) == access_map.key_of(target.index_map)
                and node not in values.arrays
                and _is_last(node, index_map, target, reduced, values)
            ),
            None,
        )
        if chosen is not None:
            phase = early[values.key(*chosen)]
            results.append(NestTarget(*chosen, phase, target.loops, array=array))
    return results


def scratch_of(values: list[NestTarget], target: NestTarget) -> list[NestTarget]:
    """The scratch values that are computed in the loops of a target."""
    return [value for value in values if value.phase == target.phase and {*value.loops} == {*target.loops}]


def _is_last(node: Node, index_map: IndexMap, target: NestTarget, reduced: set[Node], values: NestValues) -> bool:
    """Return whether the target reads none of the node's inputs besides: they may alias the output's buffer."""

    def arrays(pairs: list[tuple[Node, IndexMap]]) -> set[Node]:
        return {leaf for leaf, _ in pairs if leaf in values.arrays}

    rest = values.needed(target.node, target.index_map, {*reduced, node})
    return not arrays(values.needed(node, index_map, reduced)) & arrays(rest)
