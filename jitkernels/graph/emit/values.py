"""Values of nodes in a nest: loads, scalar code in lanes, each computed in the outermost loop that it depends on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import cones, extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type, memory_type, suffix
from jitkernels.graph.emit.conversions import converted, spread
from jitkernels.graph.emit.quotients import is_of_sums, is_possible, quotient
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node
from jitkernels.graph.operations import OPERATIONS
from jitkernels.native.language.types import NUMBERS, constant

Pair = tuple[Node, IndexMap]
WIDEST = 4
"""Elements apart up to which vectors are read whole and picked from."""


@dataclass(frozen=True)
class Array:
    """Where the elements of a kept node are: the frame's word of the address, the first one, strides in elements."""

    word: int
    strides: tuple[Number, ...]
    dtype: str
    first: Number = 0

    def region(self, index_map: IndexMap, ndim: int) -> "Array":
        """The part of it that an index map of so many dimensions describes."""
        first, strides = self.first, [0] * ndim
        for stride, (start, steps) in zip(self.strides, index_map, strict=True):
            first = first + start * stride
            for dimension, step in steps:
                strides[dimension] = strides[dimension] + step * stride
        return Array(self.word, tuple(strides), self.dtype, first)


@dataclass
class Values:
    """Computes nodes at places. `arrays`: where kept nodes are, by their ids; `lane_loop`: whose steps are lanes.

    `inside`: the place of an input of a node at some place, in the loops that there are. `reduced`: reductions that are
    done, and `stashed`: values that an array holds for the time being.
    """

    function: Function
    arrays: Mapping[int, Array]
    lane_loop: int | None
    inside: Callable[[Node, int, IndexMap], IndexMap] = cones.place_in
    reduced: dict[Any, tuple[Block, Register]] = field(default_factory=dict)
    stashed: dict[Any, Array] = field(default_factory=dict)
    multiplies: bool = field(default_factory=is_possible)

    def needed(self, node: Node, place: IndexMap) -> list[Pair]:
        """What computing a node takes, each behind its inputs; kept nodes and reductions are not looked into."""
        done: dict[Any, Pair] = {}
        stack: list[tuple[Node, IndexMap, bool]] = [(node, place, False)]
        while stack:
            one, where, expanded = stack.pop()
            key = self.key(one, where)
            if key in done:
                continue
            if expanded or self.is_leaf(one, where):
                done[key] = (one, where)
                continue
            stack.append((one, where, True))
            stack.extend(
                (inner, self.inside(one, number, where), False)
                for number, inner in reversed([*enumerate(one.inputs)])
            )
        return list(done.values())

    def lane_block(self, block: Block) -> Block | None:
        """The block whose steps are lanes, if it is this one or around it."""
        return next(
            (one for one in block.path() if one.loop is not None and one.loop == self.lane_loop), None
        )

    def lanes(self, block: Block) -> int:
        """In how many lanes a block runs."""
        found = self.lane_block(block)
        return found.lanes if found is not None else 1

    def mask(self, block: Block) -> str:
        found = self.lane_block(block)
        return found.mask if found is not None else ""

    def key(self, node: Node, place: IndexMap) -> Any:
        return id(node), cones.key_of(place)

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
            home, register = self._loaded(block, array, place)
        elif node.operation == "constant":
            kind = NUMBERS[node.dtype]
            home, register = self.function.block, Register(constant(kind, node.options["value"]), node.dtype)
        elif node.operation == "extent":
            home = self.function.block
            text = self.function.extent(node.options["extent"])
            register = converted(self.function, home, Register(text, "int64"), node.dtype)
        elif node.operation == "iota":
            home, register = self._iota(block, node, place)
        else:
            home, register = self._computed(block, node, place)
        home.known[key] = (home, register)

    def _computed(self, block: Block, node: Node, place: IndexMap) -> tuple[Block, Register]:
        found = [
            self._known(block, one, self.inside(node, number, place))
            for number, one in enumerate(node.inputs)
        ]
        home = self.function.block
        for inner, _ in found:
            if len(inner.path()) > len(home.path()):
                home = inner
        if node.operation in ("view", "reduce"):  # a reduction of nothing
            return found[0]
        lanes = max(register.lanes for _, register in found)
        outside, divisor = found[-1]
        is_fixed = outside is not home and divisor.lanes == 1
        if self.multiplies and is_fixed and is_of_sums(node, self.arrays):
            return home, quotient(self.function, home, outside, found[0][1], divisor)
        registers = [spread(self.function, inner, register, lanes) for inner, register in found]
        if node.operation == "cast":
            return home, converted(self.function, home, registers[0], node.dtype)
        return home, self.applied(home, node.operation, registers, node.dtype)

    def applied(self, block: Block, operation: str, registers: list[Register], dtype: str) -> Register:
        """An elementwise operation. Half-precision numbers are computed in single precision, as NumPy does."""
        scalar = OPERATIONS[operation].scalar
        assert scalar is not None, "elementwise"
        kinds = tuple(register.dtype for register in registers)
        code = scalar.function(kinds)
        assert code is not None, "graphs are verified"
        if "float16" in kinds and not scalar.halves:
            registers = [
                converted(self.function, block, one, "float32") if one.dtype == "float16" else one
                for one in registers
            ]
            kinds = tuple(register.dtype for register in registers)
        lanes = registers[0].lanes
        symbol, result = self.function.library.called(code, kinds, lanes)
        passed = ", ".join(f"{llvm_type(one.dtype, lanes)} {one.text}" for one in registers)
        text = self.function.new(block, f"call {llvm_type(result, lanes)} {symbol}({passed})")
        return converted(self.function, block, Register(text, result, lanes), dtype)

    def coefficients(self, strides: tuple[Number, ...], place: IndexMap) -> tuple[Number, dict[int, Number]]:
        """Where an element is in an array: a first one, and how far each step of a loop goes."""
        first: Number = 0
        steps: dict[int, Number] = {}
        for stride, (start, moves) in zip(strides, place, strict=True):
            first = first + start * stride
            for loop, step in moves:
                steps[loop] = steps.get(loop, 0) + step * stride
        return first, {loop: step for loop, step in steps.items() if not same(step, 0)}

    def address(self, block: Block, array: Array, place: IndexMap) -> tuple[Block, str, Number]:
        """The address of an element, or of the first lane's, the block that knows it, and how far lanes are apart."""
        first, steps = self.coefficients(array.strides, place)
        first = first + array.first
        function = self.function
        home, kind = function.block, memory_type(array.dtype)
        key = "base", array.word
        pointer = home.known.get(key)
        if pointer is None:
            at = function.new(home, f"getelementptr i64, ptr %frame, i64 {array.word}")
            pointer = home.known[key] = function.new(home, f"load ptr, ptr {at}")
        known: tuple[Any, ...] = (*key, extents.key_of(first))
        if not same(first, 0):
            pointer = self._moved(home, known, kind, pointer, function.extent(first))
        for inner in block.path()[1:]:
            step = steps.get(inner.loop) if inner.loop is not None else None
            if step is None:
                continue
            home, known = inner, (*known, inner.loop, extents.key_of(step))
            if known not in home.known:
                distance = inner.index
                if not same(step, 1):
                    distance = function.new(home, f"mul nsw i64 {inner.index}, {function.extent(step)}")
                self._moved(home, known, kind, pointer, distance)
            pointer = home.known[known]
        apart = steps.get(self.lane_loop, 0) if self.lane_loop is not None and self.lanes(block) > 1 else 0
        return home, pointer, apart

    def _moved(self, block: Block, key: Any, kind: str, pointer: str, distance: str) -> str:
        if key not in block.known:
            block.known[key] = self.function.new(
                block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}"
            )
        text: str = block.known[key]
        return text

    def _loaded(self, block: Block, array: Array, place: IndexMap) -> tuple[Block, Register]:
        home, pointer, apart = self.address(block, array, place)
        function, size = self.function, NUMBERS[array.dtype].size
        if same(apart, 0):
            text = function.new(home, f"load {memory_type(array.dtype)}, ptr {pointer}, align {size}")
            return home, self._from_memory(home, text, array.dtype, 1)
        mask, lanes = self.mask(block), self.lanes(block)
        vector = memory_type(array.dtype, lanes)
        if same(apart, 1) and not mask:
            text = function.new(home, f"load {vector}, ptr {pointer}, align {size}")
        elif same(apart, 1):
            name = f"llvm.masked.load.{suffix(memory_type(array.dtype), lanes)}.p0"
            function.library.declare(name, vector, ["ptr", f"<{lanes} x i1>", vector])
            text = function.new(
                home,
                f"call {vector} @{name}(ptr align {size} {pointer}, <{lanes} x i1> {mask},"
                f" {vector} {_off(array.dtype)})",
            )
        elif not mask and not isinstance(apart, extents.Extent) and 2 <= int(apart) <= min(WIDEST, lanes):
            text = self._picked(home, lanes, array.dtype, pointer, int(apart))
        else:
            text = self._gathered(home, lanes, array.dtype, pointer, apart, mask)
        return home, self._from_memory(home, text, array.dtype, lanes)

    def _picked(self, block: Block, lanes: int, dtype: str, pointer: str, apart: int) -> str:
        """Every second element, or third, ...: whole vectors are read, but for what is behind the last element."""
        function, size, kind = self.function, NUMBERS[dtype].size, memory_type(dtype)
        vector = memory_type(dtype, lanes)
        found = ""
        for number in range(apart):
            at = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {number * lanes}")
            if number < apart - 1:
                piece = function.new(block, f"load {vector}, ptr {at}, align {size}")
            else:
                name = f"llvm.masked.load.{suffix(kind, lanes)}.p0"
                function.library.declare(name, vector, ["ptr", f"<{lanes} x i1>", vector])
                on = ", ".join(f"i1 {'true' if lane <= lanes - apart else 'false'}" for lane in range(lanes))
                piece = function.new(
                    block,
                    f"call {vector} @{name}(ptr align {size} {at}, <{lanes} x i1> <{on}>, {vector} zeroinitializer)",
                )
            numbers = []
            for lane in range(lanes):
                place = lane * apart - number * lanes
                numbers.append(lanes + place if 0 <= place < lanes else lane)
            if not found:
                found = piece
                if number == 0:
                    numbers = [n - lanes if n >= lanes else 0 for n in numbers]
            order = ", ".join(f"i32 {n}" for n in numbers)
            first = found if number else piece
            second = piece if number else "poison"
            found = function.new(
                block, f"shufflevector {vector} {first}, {vector} {second}, <{lanes} x i32> <{order}>"
            )
        return found

    def _gathered(self, block: Block, lanes: int, dtype: str, pointer: str, apart: Number, mask: str) -> str:
        """Elements that do not lie side by side."""
        function = self.function
        vector, size = memory_type(dtype, lanes), NUMBERS[dtype].size
        pointers = self._pointers(block, lanes, dtype, pointer, apart)
        name = f"llvm.masked.gather.{suffix(memory_type(dtype), lanes)}.v{lanes}p0"
        function.library.declare(name, vector, [f"<{lanes} x ptr>", f"<{lanes} x i1>", vector])
        on = mask or "splat (i1 true)"
        return function.new(
            block,
            f"call {vector} @{name}(<{lanes} x ptr> align {size} {pointers}, <{lanes} x i1> {on},"
            f" {vector} {_off(dtype)})",
        )

    def _pointers(self, block: Block, lanes: int, dtype: str, pointer: str, apart: Number) -> str:
        distances = self._lane_distances(apart, lanes)
        return self.function.new(
            block, f"getelementptr {memory_type(dtype)}, ptr {pointer}, <{lanes} x i64> {distances}"
        )

    def _lane_distances(self, apart: Number, lanes: int) -> str:
        """For each lane its number times a distance, computed once."""
        function = self.function
        if not isinstance(apart, extents.Extent):
            return "<" + ", ".join(f"i64 {lane * int(apart)}" for lane in range(lanes)) + ">"
        key = "lanes", lanes, apart.key
        if key not in function.block.known:
            step = Register(function.extent(apart), "int64")
            everywhere = spread(function, function.block, step, lanes)
            numbers = "<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">"
            function.block.known[key] = function.new(
                function.block, f"mul <{lanes} x i64> {everywhere.text}, {numbers}"
            )
        text: str = function.block.known[key]
        return text

    def _from_memory(self, block: Block, text: str, dtype: str, lanes: int) -> Register:
        if dtype != "bool":
            return Register(text, dtype, lanes)
        zero = "zeroinitializer" if lanes > 1 else "0"
        return Register(
            self.function.new(block, f"icmp ne {memory_type(dtype, lanes)} {text}, {zero}"), dtype, lanes
        )

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
                home, f"add nsw <{lanes} x i64> {everywhere.text}, {self._lane_distances(apart, lanes)}"
            )
            register = Register(text, "int64", lanes)
        return home, converted(function, home, register, node.dtype)

    def store(self, block: Block, array: Array, place: IndexMap, value: Register) -> None:
        """Write a value, or those of the lanes that are on."""
        _, pointer, apart = self.address(block, array, place)
        function, size = self.function, NUMBERS[array.dtype].size
        lanes = 1 if same(apart, 0) else self.lanes(block)
        text = value.text
        if value.lanes != lanes:
            text = spread(function, block, value, lanes).text
        if array.dtype == "bool":
            text = function.new(
                block, f"zext {llvm_type('bool', lanes)} {text} to {memory_type('bool', lanes)}"
            )
        kind = memory_type(array.dtype, lanes)
        if lanes == 1:
            block.lines.append(f"  store {kind} {text}, ptr {pointer}, align {size}")
            return
        mask = self.mask(block)
        if same(apart, 1) and not mask:
            block.lines.append(f"  store {kind} {text}, ptr {pointer}, align {size}")
        elif same(apart, 1):
            name = f"llvm.masked.store.{suffix(memory_type(array.dtype), lanes)}.p0"
            function.library.declare(name, "void", [kind, "ptr", f"<{lanes} x i1>"])
            block.lines.append(
                f"  call void @{name}({kind} {text}, ptr align {size} {pointer}, <{lanes} x i1> {mask})"
            )
        else:
            pointers = self._pointers(block, lanes, array.dtype, pointer, apart)
            name = f"llvm.masked.scatter.{suffix(memory_type(array.dtype), lanes)}.v{lanes}p0"
            function.library.declare(name, "void", [kind, f"<{lanes} x ptr>", f"<{lanes} x i1>"])
            block.lines.append(
                f"  call void @{name}({kind} {text}, <{lanes} x ptr> align {size} {pointers}, "
                f"<{lanes} x i1> {mask or 'splat (i1 true)'})"
            )


def _off(dtype: str) -> str:
    """What is in lanes that are off: ones, of which no function has to think long."""
    kind = NUMBERS[dtype]
    return f"splat ({kind.memory} {constant(kind, 1.0)})" if kind.kind == "float" else "zeroinitializer"
