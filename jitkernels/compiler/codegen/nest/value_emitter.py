"""Values of nodes in a nest: loads, scalar code in lanes, each computed in the outermost loop that it depends on."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import cones, construct
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit import divisors
from jitkernels.graph.emit.blocks import Block, Register
from jitkernels.graph.emit.conversions import converted, spread
from jitkernels.graph.emit.elementwise import applied
from jitkernels.graph.emit.gathers import Index, added, picked, put
from jitkernels.graph.emit.memory import Array, Memory
from jitkernels.graph.emit.quotients import is_of_sums, is_possible, quotient
from jitkernels.graph.emit.scans import loop_of, scanned
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node
from jitkernels.native.language.types import NUMBERS, constant

Pair = tuple[Node, IndexMap]


@dataclass
class Values(Memory):
    """Computes nodes at places. `arrays`: where kept nodes are, by their ids.

    `inside`: the place of an input of a node at some place, in the loops that there are. `reduced`: reductions that are
    done, and `stashed`: values that an array holds for the time being. `runs`: how many loops over the
    columns of a row were begun, each of which takes its scans anew. `is_delicate`: some operations fail for numbers
    such as 1, which sets flags of the processor.
    """

    arrays: Mapping[int, Array]
    inside: Callable[[Node, int, IndexMap], IndexMap] = cones.place_in
    reduced: dict[Any, tuple[Block, Register]] = field(default_factory=dict)
    stashed: dict[Any, Array] = field(default_factory=dict)
    keys: dict[int, tuple[IndexMap, Any]] = field(default_factory=dict)
    runs: int = 0
    multiplies: bool = field(default_factory=is_possible)
    is_delicate: bool = False

    def needed(self, node: Node, place: IndexMap, known: Collection[int] = ()) -> list[Pair]:
        """What computing a node takes, each behind its inputs; kept nodes and reductions are not looked into.

        Nor are nodes that are `known` by their ids.
        """
        done: dict[Any, Pair] = {}
        stack: list[tuple[Node, IndexMap, bool]] = [(node, place, False)]
        while stack:
            one, where, expanded = stack.pop()
            key = self.key(one, where)
            if key in done:
                continue
            if expanded or id(one) in known or self.is_leaf(one, where):
                done[key] = (one, where)
                continue
            stack.append((one, where, True))
            stack.extend(
                (inner, self.inside(one, number, where), False)
                for number, inner in reversed([*enumerate(one.inputs)])
                if not cones.is_indexed(one, number)
            )
        return list(done.values())

    def key(self, node: Node, place: IndexMap) -> Any:
        known = self.keys.get(id(place))
        if known is None:
            known = self.keys[id(place)] = place, cones.key_of(place)
        return id(node), known[1]

    def is_leaf(self, node: Node, place: IndexMap) -> bool:
        key = self.key(node, place)
        return id(node) in self.arrays or key in self.reduced or key in self.stashed or not node.inputs

    def value(self, block: Block, node: Node, place: IndexMap) -> Register:
        """A node's value in a block, in lanes if it differs by lane."""
        for one, where in self.needed(node, place):
            self._place(block, one, where)
        return self._known(block, node, place)[1]

    def in_lanes(self, block: Block, node: Node, place: IndexMap) -> Register:
        """A node's value in all lanes."""
        self.value(block, node, place)
        home, register = self._known(block, node, place)
        return spread(self.function, home, register, self.lanes(block))

    def _known(self, block: Block, node: Node, place: IndexMap) -> tuple[Block, Register]:
        key = self.key(node, place)
        if key in self.reduced:
            return self.reduced[key]
        found: tuple[Block, Register] = block.find(key)
        return found

    def _place(self, block: Block, node: Node, place: IndexMap) -> None:
        """Compute a node whose inputs are known, unless it is known itself."""
        key = self.key(node, place)
        if key in self.reduced or block.find(key) is not None:
            return
        array = self.stashed.get(key) or self.arrays.get(id(node))
        if array is not None:
            home, register = self.loaded(block, array, place)
        elif node.operation == "constant":
            kind = NUMBERS[node.dtype]
            home, register = self.function.block, Register(constant(kind, node.options["value"]), node.dtype)
        elif node.operation == "extent":
            home = self.function.block
            text = self.function.extent(node.options["extent"])
            register = converted(self.function, home, Register(text, "int64"), node.dtype)
        elif node.operation == "iota":
            home, register = self._iota(block, node, place)
        elif node.operation == "scan":
            home, register = self._scanned(block, node, place)
        elif node.operation == "gather":
            home, register = self._picked_by_numbers(block, node, place)
        else:
            home, register = self._computed(block, node, place)
        home.known[key] = (home, register)

    def indexed(self, node: Node) -> Array:
        """Where the array is that a node picks elements of by numbers."""
        index_map, one = None, node.inputs[0]
        while id(one) not in self.arrays:
            own = one.options["map"]
            index_map = own if index_map is None else construct.composed(own, index_map)
            one = one.inputs[0]
        array = self.arrays[id(one)]
        return array if index_map is None else array.region(index_map, node.inputs[0].ndim)

    def _scanned(self, block: Block, node: Node, place: IndexMap) -> tuple[Block, Register]:
        found = self._known(block, node.inputs[0], self.inside(node, 0, place))
        loop = loop_of(place, node.options["axis"])
        if loop is None:
            return found
        return scanned(
            self, block, loop, node.options["kind"], ("scan", self.runs, self.key(node, place)), found
        )

    def _picked_by_numbers(self, block: Block, node: Node, place: IndexMap) -> tuple[Block, Register]:
        array, axis = self.indexed(node), node.options["axis"]
        given = node.inputs[0]
        numbers = self._numbers(block, node, place, array, given.shape[axis:])
        return picked(self, block, array, self.inside(node, 0, place), numbers)

    def _numbers(
        self, block: Block, node: Node, place: IndexMap, array: Array, extents: Sequence[Number]
    ) -> list[Index]:
        found = []
        strides = array.strides[node.options["axis"] :]
        for i, one in enumerate(node.inputs[1:]):
            home, register = self._known(block, one, self.inside(node, i + 1, place))
            found.append(Index(home, register, extents[i], strides[i]))
        return found

    def stored(
        self, block: Block, node: Node, place: IndexMap, array: Array, where: IndexMap, value: Register
    ) -> None:
        """Write the value of a node to a place in an array, which numbers tell if they are what places it."""
        if node.operation != "placed":
            self.store(block, array, where, value)
            return
        numbers = self._numbers(block, node, place, array, node.options["extents"])
        store = added if cones.adds(node) else put
        store(self, block, array, where, numbers, value)

    def _computed(self, block: Block, node: Node, place: IndexMap) -> tuple[Block, Register]:
        found = [
            self._known(block, one, self.inside(node, number, place))
            for number, one in enumerate(node.inputs)
        ]
        home = self.function.block
        for inner, _ in found:
            if len(inner.path()) > len(home.path()):
                home = inner
        if node.operation in ("view", "reduce", "placed"):  # a reduction of nothing
            return found[0]
        lanes = max(register.lanes for _, register in found)
        outside, divisor = found[-1]
        is_fixed = outside is not home and divisor.lanes < lanes
        if self.multiplies and is_fixed and is_of_sums(node, self.arrays):
            return home, quotient(self.function, home, outside, found[0][1], divisor)
        if is_fixed and divisors.serves(node.operation, divisor.dtype, lanes):
            return home, divisors.by_multiplying(
                self.function, home, outside, node.operation, found[0][1], divisor
            )
        registers = [spread(self.function, inner, register, lanes) for inner, register in found]
        if node.operation == "cast":
            return home, converted(self.function, home, registers[0], node.dtype)
        return home, applied(self.function, home, node.operation, registers, node.dtype)

    def _iota(self, block: Block, node: Node, place: IndexMap) -> tuple[Block, Register]:
        start, steps = place[node.options["axis"]]
        function = self.function
        home, text = function.block, function.extent(start)
        moves = dict(steps)
        for inner in block.path()[1:]:
            if inner.loop in moves and inner.loop is not None:
                home = inner
                distance = function.new(
                    inner, f"mul nsw i64 {inner.index}, {function.extent(moves[inner.loop])}"
                )
                text = function.new(inner, f"add nsw i64 {text}, {distance}")
        register = Register(text, "int64")
        lanes = self.lanes(block)
        apart = moves.get(self.lane_loop, 0) if self.lane_loop is not None and lanes > 1 else 0
        if not same(apart, 0):
            everywhere = spread(function, home, register, lanes)
            text = function.new(
                home, f"add nsw <{lanes} x i64> {everywhere.text}, {self.lane_distances(apart, lanes)}"
            )
            register = Register(text, "int64", lanes)
        return home, converted(function, home, register, node.dtype)
