"""The values that a loop nest computes: what each depends on, up to what is loaded or computed before."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.ir import access_map, builder
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.strided_array import StridedArray

Pair = tuple[Node, IndexMap]
"""A node, and the access map at which it is computed."""


@dataclass
class NestValues:
    """Nodes at access maps. `arrays`: the materialized nodes.

    `inside`: the access map of a node's operand in the existing loops. `reduced`: finished reductions, by key;
    `scratch_of_value`: values that a buffer holds as scratch, by key.
    """

    arrays: Mapping[Node, StridedArray]
    inside: Callable[[Node, int, IndexMap], IndexMap] = access_map.operand_access_map
    reduced: dict[Any, Any] = field(default_factory=dict)
    scratch_of_value: dict[Any, StridedArray] = field(default_factory=dict)
    keys: dict[int, tuple[IndexMap, Any]] = field(default_factory=dict)

    def needed(self, node: Node, index_map: IndexMap, known: Collection[Node] = ()) -> list[Pair]:
        """The dependences of a node in topological order, up to materialized nodes, reductions, and `known` nodes."""
        done: dict[Any, Pair] = {}
        stack: list[tuple[Node, IndexMap, bool]] = [(node, index_map, False)]
        while stack:
            current, where, expanded = stack.pop()
            key = self.key(current, where)
            if key in done:
                continue
            if expanded or current in known or self.is_leaf(current, where):
                done[key] = (current, where)
                continue
            stack.append((current, where, True))
            stack.extend(
                (inner, self.inside(current, number, where), False)
                for number, inner in reversed([*enumerate(current.inputs)])
                if not access_map.is_indexed(current, number)
            )
        return list(done.values())

    def key(self, node: Node, index_map: IndexMap) -> Any:
        known = self.keys.get(id(index_map))
        if known is None:
            known = self.keys[id(index_map)] = index_map, access_map.key_of(index_map)
        return node, known[1]

    def is_leaf(self, node: Node, index_map: IndexMap) -> bool:
        key = self.key(node, index_map)
        return node in self.arrays or key in self.reduced or key in self.scratch_of_value or not node.inputs

    def indexed(self, node: Node) -> StridedArray:
        """The array that a gather node loads from."""
        index_map, source = None, node.inputs[0]
        while source not in self.arrays:
            view_map = source.options["map"]
            index_map = view_map if index_map is None else builder.composed(view_map, index_map)
            source = source.inputs[0]
        array = self.arrays[source]
        return array if index_map is None else array.region(index_map, node.inputs[0].ndim)


def scanned_loop(index_map: IndexMap, axis: int) -> int | None:
    """The loop along which a scan runs; None where it has one element."""
    steps = index_map[axis][1]
    return steps[0][0] if steps else None
