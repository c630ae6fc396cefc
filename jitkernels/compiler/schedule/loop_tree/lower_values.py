"""Values of a loop tree: expressions over loads, in which values that are read several times have names."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.schedule.loop_tree.loop_statements import (
    Compute,
    Iota,
    Let,
    Literal,
    LoadElement,
    LocalVariable,
    Value,
)
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.nest_values import Pair

PASSED_THROUGH = ("view", "reduce", "placed")
"""Operations that compute nothing: a reduction among them has one element."""


class ValueLowering:
    """Lowers the values of one nest. `reduced`: the names of finished reductions, by key."""

    def __init__(self, loops: Loops) -> None:
        self.loops, self.values = loops, loops.values
        self.reduced: dict[Any, LocalVariable] = {}
        self.count = 0

    def lower(self, pairs: Sequence[Pair]) -> tuple[list[Let], list[Value]]:
        """The values of nodes at access maps, and the named values that they read."""
        uses, needed = Counter[Any](), dict[Any, Pair]()
        for node, index_map in pairs:
            uses[self.values.key(node, index_map)] += 1
            needed |= {self.values.key(*pair): pair for pair in self.values.needed(node, index_map)}
        for node, index_map in needed.values():
            if not self.values.is_leaf(node, index_map):
                uses.update(self.values.key(*pair) for pair in self._operands(node, index_map))
        known, lets = dict[Any, Value](), list[Let]()
        for key, (node, index_map) in needed.items():
            value = self._value(node, index_map, known)
            if uses[key] > 1 and isinstance(value, Compute | LoadElement):
                self.count += 1
                lets.append(Let(f"v{self.count}", value))
                value = LocalVariable(lets[-1].name)
            known[key] = value
        return lets, [known[self.values.key(*pair)] for pair in pairs]

    def lower_targets(self, targets: Sequence[NestTarget]) -> tuple[list[Let], list[Value], list[LoadElement | None]]:
        """The same for targets, and where each is stored; None for the input of a reduction."""
        indices = [
            [self._operand(target.node, number, target.index_map) for number in range(1, len(target.node.inputs))]
            if target.array is not None and target.node.operation == "placed"
            else []
            for target in targets
        ]
        pairs = [(target.node, target.index_map) for target in targets]
        lets, values = self.lower([*pairs, *(pair for own in indices for pair in own)])
        rest = iter(values[len(targets) :])
        places: list[LoadElement | None] = []
        for target, own in zip(targets, indices, strict=True):
            if target.array is None:
                places.append(None)
            elif not own:
                places.append(LoadElement(target.array, target.index_map))
            else:
                strides = target.array.strides[target.node.options["axis"] :]
                numbers = tuple(zip((next(rest) for _ in own), strides, strict=False))
                places.append(LoadElement(target.array, _without_indexed(target.where), numbers))
        return lets, values[: len(targets)], places

    def _operand(self, node: Node, number: int, index_map: IndexMap) -> Pair:
        return node.inputs[number], self.loops.inside(node, number, index_map)

    def _operands(self, node: Node, index_map: IndexMap) -> list[Pair]:
        numbers = (number for number in range(len(node.inputs)) if not access_map.is_indexed(node, number))
        return [self._operand(node, number, index_map) for number in numbers]

    def _value(self, node: Node, index_map: IndexMap, known: dict[Any, Value]) -> Value:
        key = self.values.key(node, index_map)
        if key in self.reduced:
            return self.reduced[key]
        array = self.values.scratch_of_value.get(key) or self.values.arrays.get(node)
        if array is not None:
            return LoadElement(array, index_map)
        match node.operation:
            case "constant":
                return Literal(node.options["value"], node.dtype)
            case "extent":
                return Literal(node.options["extent"], node.dtype)
            case "iota":
                start, steps = index_map[node.options["axis"]]
                return Iota(start, tuple(steps))
            case "gather":
                array = self.values.indexed(node)
                own = _without_indexed(self.loops.inside(node, 0, index_map))
                keys = [self.values.key(*pair) for pair in self._operands(node, index_map)]
                strides = array.strides[node.options["axis"] :]
                return LoadElement(
                    array, own, tuple((known[key], stride) for key, stride in zip(keys, strides, strict=False))
                )
        operands = tuple(known[self.values.key(*pair)] for pair in self._operands(node, index_map))
        if node.operation in PASSED_THROUGH:
            return operands[0]
        name = f"cum{node.options['kind']}" if node.operation == "scan" else node.operation
        return Compute(name, operands, node.dtype)


def _without_indexed(index_map: IndexMap) -> IndexMap:
    """An access map without the loops that stand for computed indices."""
    return tuple(
        (start, tuple((loop, step) for loop, step in steps if loop != access_map.ANYWHERE))
        for start, steps in index_map
    )
