"""Elements in memory: where they are, and how lanes of them are read and written."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit import whole_lines
from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type, memory_type, suffix
from jitkernels.graph.emit.conversions import spread
from jitkernels.graph.emit.whole_lines import LINE
from jitkernels.graph.extents import Number, same
from jitkernels.graph.short import WIDEST
from jitkernels.native.language.types import NUMBERS, constant


def is_near(apart: Number) -> bool:
    """Whether elements so far apart are read and written in whole vectors."""
    return not isinstance(apart, extents.Extent) and 1 <= abs(apart) <= WIDEST


@dataclass(frozen=True)
class Array:
    """Where a kept node's elements are: the frame's word of the address, the first one, strides in elements.

    `instead`: a loop, and the register that stands for its count here.
    """

    word: int
    strides: tuple[Number, ...]
    dtype: str
    first: Number = 0
    instead: tuple[int, str] | None = None

    def region(self, index_map: IndexMap, ndim: int) -> "Array":
        """The part of it that an index map of so many dimensions describes."""
        first, strides = self.first, [0] * ndim
        for stride, (start, steps) in zip(self.strides, index_map, strict=True):
            first = first + start * stride
            for dimension, step in steps:
                strides[dimension] = strides[dimension] + step * stride
        return Array(self.word, tuple(strides), self.dtype, first)


@dataclass
class Memory:
    """Reads and writes elements of arrays. `lane_loop`: the loop whose steps are lanes."""

    is_delicate = False  # until a subclass says otherwise
    function: Function
    lane_loop: int | None

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

    def coefficients(self, strides: tuple[Number, ...], place: IndexMap) -> tuple[Number, dict[int, Number]]:
        """Where an element is in an array: a first one, and how far each step of a loop goes."""
        first: Number = 0
        steps: dict[int, Number] = {}
        for stride, (start, moves) in zip(strides, place, strict=True):
            first = first + start * stride
            for loop, step in moves:
                steps[loop] = steps.get(loop, 0) + step * stride
        return first, {loop: step for loop, step in steps.items() if not same(step, 0)}

    def address(
        self, block: Block, array: Array, place: IndexMap, moves: Sequence[tuple[Block, str]] = ()
    ) -> tuple[Block, str, Number]:
        """The address of an element, or of the first lane's, the block that knows it, and how far lanes are apart.

        `moves` are distances beside those of the place, each with the block that knows it.
        """
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
        for inner in block.path():
            step = steps.get(inner.loop) if inner.loop is not None else None
            if step is not None:
                index = array.instead[1] if array.instead and array.instead[0] == inner.loop else inner.index
                home, known = inner, (*known, inner.loop, index, extents.key_of(step))
                if known not in home.known:
                    if not same(step, 1):
                        index = function.new(home, f"mul nsw i64 {index}, {function.extent(step)}")
                    self._moved(home, known, kind, pointer, index)
                pointer = home.known[known]
            for own, distance in moves:
                if own is inner:
                    home, known = inner, (*known, distance)
                    pointer = self._moved(home, known, kind, pointer, distance)
        apart = steps.get(self.lane_loop, 0) if self.lane_loop is not None and self.lanes(block) > 1 else 0
        return home, pointer, apart

    def _moved(self, block: Block, key: Any, kind: str, pointer: str, distance: str) -> str:
        if key not in block.known:
            block.known[key] = self.function.new(
                block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}"
            )
        text: str = block.known[key]
        return text

    def loaded(
        self, block: Block, array: Array, place: IndexMap, moves: Sequence[tuple[Block, str]] = ()
    ) -> tuple[Block, Register]:
        """An element, or those of all lanes, and the block that knows them."""
        home, pointer, apart = self.address(block, array, place, moves)
        return home, self.read(home, block, array, pointer, apart)

    def read(self, home: Block, block: Block, array: Array, pointer: str, apart: Number) -> Register:
        """What is at an address, and where lanes are apart from it, as a value that a block around knows."""
        function, size = self.function, NUMBERS[array.dtype].size
        if same(apart, 0):
            held = block.find(("held", array.word))
            if held is not None:
                text = whole_lines.following(function, home, array.dtype, held)
            else:
                text = function.new(home, f"load {memory_type(array.dtype)}, ptr {pointer}, align {size}")
            return self.from_memory(home, text, array.dtype, 1)
        mask, lanes = self.mask(block), self.lanes(block)
        vector = memory_type(array.dtype, lanes)
        shift = block.find(("shift", array.word))
        if same(apart, 1) and not mask and shift is not None:
            text = whole_lines.read(function, home, lanes, array.dtype, pointer, shift)
        elif same(apart, 1) and not mask:
            text = function.new(home, f"load {vector}, ptr {pointer}, align {size}")
        elif same(apart, 1):
            text = self._masked(home, lanes, array.dtype, pointer, mask, pointer)
        elif same(apart, -1):
            text = self._backwards(home, lanes, array.dtype, pointer, mask)
        elif is_near(apart) and abs(apart) <= lanes:
            text = self._in_vectors(home, lanes, array.dtype, pointer, int(apart), mask)
            if mask:
                off = self._off(home, array.dtype, pointer, lanes)
                text = function.new(home, f"select <{lanes} x i1> {mask}, {vector} {text}, {vector} {off}")
        else:
            distances = self.lane_distances(apart, lanes)
            text = self.gathered(home, lanes, array.dtype, pointer, distances, mask)
        return self.from_memory(home, text, array.dtype, lanes)

    def _backwards(self, block: Block, lanes: int, dtype: str, pointer: str, mask: str) -> str:
        """A vector whose first lane is the last element in memory."""
        first = self._last_lane(block, lanes, dtype, pointer)
        if mask:
            found = self._masked(block, lanes, dtype, first, self._turned(block, lanes, "i1", mask), pointer)
        else:
            vector, size = memory_type(dtype, lanes), NUMBERS[dtype].size
            found = self.function.new(block, f"load {vector}, ptr {first}, align {size}")
        return self._turned(block, lanes, memory_type(dtype), found)

    def _last_lane(self, block: Block, lanes: int, dtype: str, pointer: str) -> str:
        """Where the last lane is, if lanes go backwards."""
        return self.function.new(block, f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {1 - lanes}")

    def _turned(self, block: Block, lanes: int, kind: str, text: str) -> str:
        """The lanes of a vector in the other order."""
        order = ", ".join(f"i32 {lane}" for lane in reversed(range(lanes)))
        vector = f"<{lanes} x {kind}>"
        return self.function.new(
            block, f"shufflevector {vector} {text}, {vector} poison, <{lanes} x i32> <{order}>"
        )

    def _masked(self, block: Block, lanes: int, dtype: str, pointer: str, mask: str, first: str) -> str:
        """The lanes that are on of a vector in memory; `first` is where the first lane is, which is on."""
        vector, size = memory_type(dtype, lanes), NUMBERS[dtype].size
        name = f"llvm.masked.load.{suffix(memory_type(dtype), lanes)}.p0"
        self.function.library.declare(name, vector, ["ptr", f"<{lanes} x i1>", vector])
        off = self._off(block, dtype, first, lanes)
        given = f"ptr align {size} {pointer}, <{lanes} x i1> {mask}, {vector} {off}"
        return self.function.new(block, f"call {vector} @{name}({given})")

    def _in_vectors(self, block: Block, lanes: int, dtype: str, pointer: str, apart: int, mask: str) -> str:
        """Every second element, or third, ...: of one vector after another, as LLVM finds no way with more at once."""
        most = LINE // NUMBERS[dtype].size
        kind, parts = memory_type(dtype), []
        if apart < 0:
            last = self.function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {(lanes - 1) * apart}")
            on = self._turned(block, lanes, "i1", mask) if mask else ""
            found = self._in_vectors(block, lanes, dtype, last, -apart, on)
            return self._turned(block, lanes, kind, found)
        for first in range(0, lanes, most):
            at = self.function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {first * apart}")
            on = self._spread_mask(block, mask, lanes, range(first, min(first + most, lanes)), 1)
            parts.append(self._picked(block, min(most, lanes), dtype, at, apart, on))
        return whole_lines.joined(self.function, block, parts, min(most, lanes), kind)

    def _spread_mask(self, block: Block, mask: str, lanes: int, places: range, apart: int) -> str:
        """A mask for places in memory where every second one, or third, ... is a lane; none where all lanes are on."""
        if not mask or (apart == 1 and len(places) == lanes):
            return mask
        order = ", ".join(f"i32 {lanes if place % apart else place // apart}" for place in places)
        kind, numbers = f"<{lanes} x i1>", f"<{len(places)} x i32> <{order}>"
        return self.function.new(block, f"shufflevector {kind} {mask}, {kind} zeroinitializer, {numbers}")

    def _picked(self, block: Block, lanes: int, dtype: str, pointer: str, apart: int, mask: str) -> str:
        """Every second element, or third, ...: whole vectors are read, but for what is behind the last element."""
        function, size, kind = self.function, NUMBERS[dtype].size, memory_type(dtype)
        vector = memory_type(dtype, lanes)
        found = ""
        for number in range(apart):
            at = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {number * lanes}")
            if number < apart - 1 and not mask:
                piece = function.new(block, f"load {vector}, ptr {at}, align {size}")
            else:
                name = f"llvm.masked.load.{suffix(kind, lanes)}.p0"
                function.library.declare(name, vector, ["ptr", f"<{lanes} x i1>", vector])
                on = ", ".join(f"i1 {'true' if lane <= lanes - apart else 'false'}" for lane in range(lanes))
                places = range(number * lanes, (number + 1) * lanes)
                there = self._spread_mask(block, mask, lanes, places, apart) or f"<{on}>"
                piece = function.new(
                    block,
                    f"call {vector} @{name}(ptr align {size} {at}, <{lanes} x i1> {there}, {vector} zeroinitializer)",
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

    def gathered(self, block: Block, lanes: int, dtype: str, pointer: str, distances: str, mask: str) -> str:
        """Elements that do not lie side by side."""
        function = self.function
        vector, size = memory_type(dtype, lanes), NUMBERS[dtype].size
        pointers = self._pointers(block, lanes, dtype, pointer, distances)
        name = f"llvm.masked.gather.{suffix(memory_type(dtype), lanes)}.v{lanes}p0"
        function.library.declare(name, vector, [f"<{lanes} x ptr>", f"<{lanes} x i1>", vector])
        on, off = mask or "splat (i1 true)", "poison"
        if mask:
            first = pointer
            if self.is_delicate:
                first = function.new(block, f"extractelement <{lanes} x ptr> {pointers}, i64 0")
            off = self._off(block, dtype, first, lanes)
        given = f"<{lanes} x ptr> align {size} {pointers}, <{lanes} x i1> {on}, {vector} {off}"
        return function.new(block, f"call {vector} @{name}({given})")

    def _pointers(self, block: Block, lanes: int, dtype: str, pointer: str, distances: str) -> str:
        return self.function.new(
            block, f"getelementptr {memory_type(dtype)}, ptr {pointer}, <{lanes} x i64> {distances}"
        )

    def lane_distances(self, apart: Number, lanes: int) -> str:
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

    def from_memory(self, block: Block, text: str, dtype: str, lanes: int) -> Register:
        if dtype != "bool":
            return Register(text, dtype, lanes)
        zero = "zeroinitializer" if lanes > 1 else "0"
        return Register(
            self.function.new(block, f"icmp ne {memory_type(dtype, lanes)} {text}, {zero}"), dtype, lanes
        )

    def store(self, block: Block, array: Array, place: IndexMap, value: Register) -> None:
        """Write a value, or those of the lanes that are on."""
        _, pointer, apart = self.address(block, array, place)
        self.written(block, array, pointer, apart, value)

    def written(self, block: Block, array: Array, pointer: str, apart: Number, value: Register) -> None:
        """Write to an address, and where lanes are apart from it."""
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
        if same(apart, 1) and not mask and block.streamed and array.word in block.streamed[0]:
            past, into, after = (function.label() for _ in range(3))
            store, line = f"  store {kind} {text}, ptr {pointer}, align", min(lanes * size, LINE)
            block.lines += [
                f"  br i1 {block.streamed[1]}, label %{past}, label %{into}, !prof !4",
                *(f"{past}:", f"{store} {line}, !nontemporal !3", f"  br label %{after}"),
                *(f"{into}:", f"{store} {size}", f"  br label %{after}", f"{after}:"),
            ]
        elif same(apart, 1) and not mask:
            block.lines.append(f"  store {kind} {text}, ptr {pointer}, align {size}")
        elif same(apart, 1):
            self._put(block, lanes, array.dtype, text, pointer, mask)
        elif same(apart, -1):
            first = self._last_lane(block, lanes, array.dtype, pointer)
            turned = self._turned(block, lanes, memory_type(array.dtype), text)
            if mask:
                on = self._turned(block, lanes, "i1", mask)
                self._put(block, lanes, array.dtype, turned, first, on)
            else:
                block.lines.append(f"  store {kind} {turned}, ptr {first}, align {size}")
        elif is_near(apart) and 1 < apart <= lanes:
            self._spaced(block, lanes, array.dtype, text, pointer, int(apart))
        else:
            self.scattered(block, array.dtype, pointer, self.lane_distances(apart, lanes), value, lanes)

    def _put(self, block: Block, lanes: int, dtype: str, text: str, pointer: str, mask: str) -> None:
        """Write the lanes that are on of a vector."""
        kind = memory_type(dtype, lanes)
        name = f"llvm.masked.store.{suffix(memory_type(dtype), lanes)}.p0"
        self.function.library.declare(name, "void", [kind, "ptr", f"<{lanes} x i1>"])
        block.lines.append(
            f"  call void @{name}({kind} {text}, ptr align {NUMBERS[dtype].size} {pointer},"
            f" <{lanes} x i1> {mask})"
        )

    def _spaced(self, block: Block, lanes: int, dtype: str, text: str, pointer: str, apart: int) -> None:
        """Every second element, or third, ...: whole vectors are written, but for what lies between."""
        new, kind, vector = self.function.new, memory_type(dtype), memory_type(dtype, lanes)
        width = min(LINE // NUMBERS[dtype].size, lanes)
        for first in range(0, lanes * apart, width):
            places = range(first, first + width)
            order = ", ".join("i32 poison" if place % apart else f"i32 {place // apart}" for place in places)
            on = ", ".join(f"i1 {'false' if place % apart else 'true'}" for place in places)
            part = new(block, f"shufflevector {vector} {text}, {vector} poison, <{width} x i32> <{order}>")
            at = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {first}")
            there = self._spread_mask(block, self.mask(block), lanes, places, apart) or f"<{on}>"
            self._put(block, width, dtype, part, at, there)

    def scattered(
        self, block: Block, dtype: str, pointer: str, distances: str, value: Register, lanes: int
    ) -> None:
        """Write the lanes that are on so far from an address, one after another."""
        text = spread(self.function, block, value, lanes).text
        if dtype == "bool":
            text = self.function.new(
                block, f"zext {llvm_type(dtype, lanes)} {text} to {memory_type(dtype, lanes)}"
            )
        pointers = self._pointers(block, lanes, dtype, pointer, distances)
        kind = memory_type(dtype, lanes)
        name = f"llvm.masked.scatter.{suffix(memory_type(dtype), lanes)}.v{lanes}p0"
        self.function.library.declare(name, "void", [kind, f"<{lanes} x ptr>", f"<{lanes} x i1>"])
        block.lines.append(
            f"  call void @{name}({kind} {text}, <{lanes} x ptr> align {NUMBERS[dtype].size} {pointers}, "
            f"<{lanes} x i1> {self.mask(block) or 'splat (i1 true)'})"
        )

    def _off(self, block: Block, dtype: str, pointer: str, lanes: int) -> str:
        """What is in lanes that are off: ones, of which no function has to think long.

        Where some operation may fail for those, what is in the first lane: then nothing fails there alone.
        """
        kind, size = NUMBERS[dtype], NUMBERS[dtype].size
        if not self.is_delicate:
            return (
                f"splat ({kind.memory} {constant(kind, 1.0)})" if kind.kind == "float" else "zeroinitializer"
            )
        new, vector = self.function.new, memory_type(dtype, lanes)
        first = new(block, f"load {kind.memory}, ptr {pointer}, align {size}")
        one = new(block, f"insertelement {vector} poison, {kind.memory} {first}, i64 0")
        return new(block, f"shufflevector {vector} {one}, {vector} poison, <{lanes} x i32> zeroinitializer")
