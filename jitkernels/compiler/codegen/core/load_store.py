"""Loads and stores of array elements: addresses from access maps, and vectors by stride and mask."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core import aligned_loads, complex_lanes, prefix_vectors
from jitkernels.compiler.codegen.core.casts import broadcast
from jitkernels.compiler.codegen.core.ir_builder import (
    Block,
    FunctionBuilder,
    LaneMask,
    Register,
    llvm_type,
    memory_type,
    suffix,
)
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.strided_array import StridedArray, is_small_stride
from jitkernels.compiler.ir.symbolic_dims import Number, same
from jitkernels.core import cpu_target
from jitkernels.core.cpu_target import CACHE_LINE_BYTES


@dataclass
class Memory:
    """Loads and stores array elements. `lane_loop`: the loop whose iterations are lanes."""

    keeps_fp_flags_exact = False  # until a subclass says otherwise
    function: FunctionBuilder
    lane_loop: int | None

    def lane_block(self, block: Block) -> Block | None:
        """The block of the lane loop, if it is this one or an enclosing one."""
        return next((inner for inner in block.path() if inner.loop is not None and inner.loop == self.lane_loop), None)

    def lanes(self, block: Block) -> int:
        lane_block = self.lane_block(block)
        return lane_block.lanes if lane_block is not None else 1

    def mask(self, block: Block) -> str:
        lane_block = self.lane_block(block)
        return lane_block.mask if lane_block is not None else ""

    def address(
        self, block: Block, array: StridedArray, access_map: IndexMap, offsets: Sequence[tuple[Block, str]] = ()
    ) -> tuple[Block, str, Number]:
        """Return the block that computes an element's address (the first lane's), the address, and the lane stride.

        `moves`: further offsets, each with the block that computes it.
        """
        first, coefficients = array.coefficients(access_map)
        first = first + array.first
        function = self.function
        home, kind = function.block, memory_type(array.dtype)
        key = "base", array.word
        pointer = home.known.get(key)
        if pointer is None:
            pointer = home.known[key] = function.load_slot(home, array.word, "ptr")
        known: tuple[Any, ...] = (*key, symbolic_dims.key_of(first))
        if not same(first, 0):
            pointer = self._moved(home, known, kind, pointer, function.extent(first))
        for inner in block.path():
            coefficient = coefficients.get(inner.loop) if inner.loop is not None else None
            if coefficient is not None:
                index = array.instead[1] if array.instead and array.instead[0] == inner.loop else inner.index
                home, known = inner, (*known, inner.loop, index, symbolic_dims.key_of(coefficient))
                if known not in home.known:
                    if not same(coefficient, 1):
                        index = function.new(home, f"mul nsw i64 {index}, {function.extent(coefficient)}")
                    self._moved(home, known, kind, pointer, index)
                pointer = home.known[known]
            for offset_block, distance in offsets:
                if offset_block is inner:
                    home, known = inner, (*known, distance)
                    pointer = self._moved(home, known, kind, pointer, distance)
        stride = coefficients.get(self.lane_loop, 0) if self.lane_loop is not None and self.lanes(block) > 1 else 0
        return home, pointer, stride

    def _moved(self, block: Block, key: Any, kind: str, pointer: str, distance: str) -> str:
        if key not in block.known:
            block.known[key] = self.function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}")
        text: str = block.known[key]
        return text

    def load(
        self, block: Block, array: StridedArray, access_map: IndexMap, offsets: Sequence[tuple[Block, str]] = ()
    ) -> tuple[Block, Register]:
        """Load an element, or one per lane; return the block that computes the value too."""
        home, pointer, lane_stride = self.address(block, array, access_map, offsets)
        return home, self.load_at(home, block, array, pointer, lane_stride)

    def load_at(self, home: Block, block: Block, array: StridedArray, pointer: str, stride: Number) -> Register:
        """Load from an address, with a lane stride, in block `home`; the mask is that of `block`."""
        if array.dtype in PLANES:
            return complex_lanes.load(self, home, block, array, pointer, stride)
        function, size = self.function, NUMBERS[array.dtype].size
        if same(stride, 0):
            held = block.find(("held", array.word))
            if held is not None:
                text = aligned_loads.next_element(function, home, array.dtype, held)
            else:
                text = function.new(home, f"load {memory_type(array.dtype)}, ptr {pointer}, align {size}")
            return self.from_memory(home, text, array.dtype, 1)
        mask, lanes = self.mask(block), self.lanes(block)
        vector = memory_type(array.dtype, lanes)
        shift = block.find(("shift", array.word))
        if same(stride, 1) and not mask and shift is not None:
            text = aligned_loads.load_lines(function, home, lanes, array.dtype, pointer, shift)
        elif same(stride, 1) and not mask:
            text = function.new(home, f"load {vector}, ptr {pointer}, align {size}")
        elif same(stride, 1):
            text = self.masked_load(home, lanes, array.dtype, pointer, mask, pointer)
        elif same(stride, -1):
            text = self._reversed_load(home, lanes, array.dtype, pointer, mask)
        elif is_small_stride(stride) and abs(stride) <= lanes:
            text = self._strided_load(home, lanes, array.dtype, pointer, int(stride), mask)
            if mask:
                off = self._off(home, array.dtype, pointer, lanes)
                text = function.new(home, f"select <{lanes} x i1> {mask}, {vector} {text}, {vector} {off}")
        else:
            text = block.find(("transposed", array.word))
            if text is None:
                distances = self.lane_distances(stride, lanes)
                text = self.gather_lanes(home, lanes, array.dtype, pointer, distances, mask)
        return self.from_memory(home, text, array.dtype, lanes)

    def _reversed_load(self, block: Block, lanes: int, dtype: str, pointer: str, mask: str) -> str:
        """Load a vector whose first lane is the last element in memory."""
        first = self._last_lane(block, lanes, dtype, pointer)
        if mask:
            reversed_vector = self.masked_load(
                block, lanes, dtype, first, self._reversed(block, lanes, "i1", mask), pointer
            )
        else:
            vector, size = memory_type(dtype, lanes), NUMBERS[dtype].size
            reversed_vector = self.function.new(block, f"load {vector}, ptr {first}, align {size}")
        return self._reversed(block, lanes, memory_type(dtype), reversed_vector)

    def _last_lane(self, block: Block, lanes: int, dtype: str, pointer: str) -> str:
        """The address of the last lane, if lanes run backwards."""
        return self.function.new(block, f"getelementptr {memory_type(dtype)}, ptr {pointer}, i64 {1 - lanes}")

    def _reversed(self, block: Block, lanes: int, kind: str, text: str) -> str:
        """Reverse the lanes of a vector."""
        return self.function.shuffle(block, kind, lanes, text, "poison", reversed(range(lanes)))

    def masked_load(self, block: Block, lanes: int, dtype: str, pointer: str, mask: str, first: str) -> str:
        """Load the active lanes of a vector; `first`: the address of the first lane, which is active."""
        off = self._off(block, dtype, first, lanes)
        prefix = self.function.prefixes.get(mask)
        if prefix is not None and not cpu_target.target().loads_masked(NUMBERS[dtype].size):
            vector = memory_type(dtype, lanes)
            text = prefix_vectors.load_prefix(self.function, block, dtype, pointer, prefix)
            return self.function.new(block, f"select <{lanes} x i1> {mask}, {vector} {text}, {vector} {off}")
        active = LaneMask(lanes, mask, off)
        return self.function.masked_load(block, memory_type(dtype), pointer, NUMBERS[dtype].size, active)

    def _strided_load(self, block: Block, lanes: int, dtype: str, pointer: str, stride: int, mask: str) -> str:
        """Load with a small constant stride, vector by vector: LLVM finds no good code for more at once."""
        most = CACHE_LINE_BYTES // NUMBERS[dtype].size
        kind, parts = memory_type(dtype), []
        if stride < 0:
            last = self.function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {(lanes - 1) * stride}")
            active = self._reversed(block, lanes, "i1", mask) if mask else ""
            result = self._strided_load(block, lanes, dtype, last, -stride, active)
            return self._reversed(block, lanes, kind, result)
        for first in range(0, lanes, most):
            at = self.function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {first * stride}")
            active = self._expanded_mask(block, mask, lanes, range(first, min(first + most, lanes)), 1)
            parts.append(self._shuffled_strided(block, min(most, lanes), dtype, at, stride, active))
        return aligned_loads.concatenate_vectors(self.function, block, parts, min(most, lanes), kind)

    def _expanded_mask(self, block: Block, mask: str, lanes: int, positions: range, stride: int) -> str:
        """Expand a lane mask to memory positions of which each `stride`-th is a lane; "" if all are active."""
        if not mask or (stride == 1 and len(positions) == lanes):
            return mask
        numbers = (lanes if at % stride else at // stride for at in positions)
        return self.function.shuffle(block, "i1", lanes, mask, "zeroinitializer", numbers)

    def _shuffled_strided(self, block: Block, lanes: int, dtype: str, pointer: str, stride: int, mask: str) -> str:
        """Load every `stride`-th element: whole vectors, masked behind the last element, shuffled together."""
        function, size, kind = self.function, NUMBERS[dtype].size, memory_type(dtype)
        vector = memory_type(dtype, lanes)
        result = ""
        for number in range(stride):
            at = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {number * lanes}")
            if number < stride - 1 and not mask:
                piece = function.new(block, f"load {vector}, ptr {at}, align {size}")
            else:
                on = ", ".join(f"i1 {'true' if lane <= lanes - stride else 'false'}" for lane in range(lanes))
                positions = range(number * lanes, (number + 1) * lanes)
                active = self._expanded_mask(block, mask, lanes, positions, stride) or f"<{on}>"
                piece = function.masked_load(block, kind, at, size, LaneMask(lanes, active))
            numbers = []
            for lane in range(lanes):
                position = lane * stride - number * lanes
                numbers.append(lanes + position if 0 <= position < lanes else lane)
            if number == 0:
                numbers = [n - lanes if n >= lanes else 0 for n in numbers]
            first, second = (result, piece) if number else (piece, "poison")
            result = function.shuffle(block, kind, lanes, first, second, numbers)
        return result

    def gather_lanes(self, block: Block, lanes: int, dtype: str, pointer: str, distances: str, mask: str) -> str:
        """Gather elements at distances from an address."""
        function = self.function
        if dtype in PLANES:
            distances, mask = complex_lanes.doubled_lanes(function, block, distances, mask, lanes)
            return self.gather_lanes(block, 2 * lanes, PLANES[dtype], pointer, distances, mask)
        vector, size = memory_type(dtype, lanes), NUMBERS[dtype].size
        pointers = self._pointers(block, lanes, dtype, pointer, distances)
        name = f"llvm.masked.gather.{suffix(memory_type(dtype), lanes)}.v{lanes}p0"
        function.library.declare(name, vector, [f"<{lanes} x ptr>", f"<{lanes} x i1>", vector])
        active, off_value = mask or "splat (i1 true)", "poison"
        if mask:
            first = pointer
            if self.keeps_fp_flags_exact:
                first = function.new(block, f"extractelement <{lanes} x ptr> {pointers}, i64 0")
            off_value = self._off(block, dtype, first, lanes)
        arguments = f"<{lanes} x ptr> align {size} {pointers}, <{lanes} x i1> {active}, {vector} {off_value}"
        return function.new(block, f"call {vector} @{name}({arguments})")

    def _pointers(self, block: Block, lanes: int, dtype: str, pointer: str, distances: str) -> str:
        return self.function.new(
            block, f"getelementptr {memory_type(dtype)}, ptr {pointer}, <{lanes} x i64> {distances}"
        )

    def lane_distances(self, stride: Number, lanes: int) -> str:
        """Return each lane's distance from the first one, computed once."""
        function = self.function
        if not isinstance(stride, symbolic_dims.Extent):
            return "<" + ", ".join(f"i64 {lane * int(stride)}" for lane in range(lanes)) + ">"
        key = "lanes", lanes, stride.key
        if key not in function.block.known:
            stride_value = Register(function.extent(stride), "int64")
            splat_stride = broadcast(function, function.block, stride_value, lanes)
            numbers = "<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">"
            function.block.known[key] = function.new(
                function.block, f"mul <{lanes} x i64> {splat_stride.text}, {numbers}"
            )
        text: str = function.block.known[key]
        return text

    def from_memory(self, block: Block, text: str, dtype: str, lanes: int) -> Register:
        if dtype != "bool":
            return Register(text, dtype, lanes)
        zero = "zeroinitializer" if lanes > 1 else "0"
        return Register(self.function.new(block, f"icmp ne {memory_type(dtype, lanes)} {text}, {zero}"), dtype, lanes)

    def store(self, block: Block, array: StridedArray, access_map: IndexMap, value: Register) -> None:
        """Store a value at an access map, or the active lanes."""
        _, pointer, lane_stride = self.address(block, array, access_map)
        self.store_at(block, array, pointer, lane_stride, value)

    def store_at(self, block: Block, array: StridedArray, pointer: str, stride: Number, value: Register) -> None:
        """Store to an address with a lane stride."""
        function, size = self.function, NUMBERS[array.dtype].size
        lanes = 1 if same(stride, 0) else self.lanes(block)
        text = value.text
        if value.lanes != lanes:
            text = broadcast(function, block, value, lanes).text
        if array.dtype in PLANES:
            complex_lanes.store(self, block, array, pointer, stride, Register(text, array.dtype, lanes))
            return
        if array.dtype == "bool":
            text = function.new(block, f"zext {llvm_type('bool', lanes)} {text} to {memory_type('bool', lanes)}")
        kind = memory_type(array.dtype, lanes)
        if lanes == 1:
            block.lines.append(f"  store {kind} {text}, ptr {pointer}, align {size}")
            return
        mask = self.mask(block)
        if same(stride, 1) and not mask and block.streamed and array.word in block.streamed[0]:
            self.streamed_store(block, Register(text, array.dtype, lanes), pointer, block.streamed[1])
        elif same(stride, 1) and not mask:
            block.lines.append(f"  store {kind} {text}, ptr {pointer}, align {size}")
        elif same(stride, 1):
            self.masked_store(block, lanes, array.dtype, text, pointer, mask)
        elif same(stride, -1):
            first = self._last_lane(block, lanes, array.dtype, pointer)
            flipped = self._reversed(block, lanes, memory_type(array.dtype), text)
            if mask:
                active = self._reversed(block, lanes, "i1", mask)
                self.masked_store(block, lanes, array.dtype, flipped, first, active)
            else:
                block.lines.append(f"  store {kind} {flipped}, ptr {first}, align {size}")
        elif is_small_stride(stride) and 1 < stride <= lanes:
            self._strided_store(block, lanes, array.dtype, text, pointer, int(stride))
        else:
            self.scatter_lanes(block, array.dtype, pointer, self.lane_distances(stride, lanes), value, lanes)

    def streamed_store(self, block: Block, value: Register, pointer: str, condition: str) -> None:
        """Store a vector past the caches where a condition holds."""
        size, kind = NUMBERS[value.dtype].size, memory_type(value.dtype, value.lanes)
        stream, cache, after = (self.function.label() for _ in range(3))
        store, line = f"  store {kind} {value.text}, ptr {pointer}, align", min(value.lanes * size, CACHE_LINE_BYTES)
        block.lines += [
            f"  br i1 {condition}, label %{stream}, label %{cache}, !prof !4",
            *(f"{stream}:", f"{store} {line}, !nontemporal !3", f"  br label %{after}"),
            *(f"{cache}:", f"{store} {size}", f"  br label %{after}", f"{after}:"),
        ]

    def masked_store(self, block: Block, lanes: int, dtype: str, text: str, pointer: str, mask: str) -> None:
        """Store the active lanes of a vector."""
        kind, prefix = memory_type(dtype, lanes), self.function.prefixes.get(mask)
        if prefix is not None and not cpu_target.target().stores_masked(NUMBERS[dtype].size):
            prefix_vectors.store_prefix(self.function, block, dtype, text, pointer, prefix)
            return
        name = f"llvm.masked.store.{suffix(memory_type(dtype), lanes)}.p0"
        self.function.library.declare(name, "void", [kind, "ptr", f"<{lanes} x i1>"])
        block.lines.append(
            f"  call void @{name}({kind} {text}, ptr align {NUMBERS[dtype].size} {pointer}, <{lanes} x i1> {mask})"
        )

    def _strided_store(self, block: Block, lanes: int, dtype: str, text: str, pointer: str, stride: int) -> None:
        """Store with a small constant stride: whole vectors, with the elements between masked off, or lane by lane."""
        new, kind, size = self.function.new, memory_type(dtype), NUMBERS[dtype].size
        if not cpu_target.target().stores_masked(size):
            if self.mask(block):
                number = "uint8" if dtype == "bool" else dtype  # in memory they are the same
                value = Register(text, number, lanes)
                self.scatter_lanes(block, number, pointer, self.lane_distances(stride, lanes), value, lanes)
                return
            for lane in range(lanes):
                element = new(block, f"extractelement <{lanes} x {kind}> {text}, i64 {lane}")
                at = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {lane * stride}")
                block.lines.append(f"  store {kind} {element}, ptr {at}, align {size}")
            return
        width = min(CACHE_LINE_BYTES // size, lanes)
        for first in range(0, lanes * stride, width):
            positions = range(first, first + width)
            numbers = ("poison" if i % stride else i // stride for i in positions)
            on = ", ".join(f"i1 {'false' if i % stride else 'true'}" for i in positions)
            part = self.function.shuffle(block, kind, lanes, text, "poison", numbers)
            at = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {first}")
            mask = self._expanded_mask(block, self.mask(block), lanes, positions, stride) or f"<{on}>"
            self.masked_store(block, width, dtype, part, at, mask)

    def scatter_lanes(
        self, block: Block, dtype: str, pointer: str, distances: str, value: Register, lanes: int
    ) -> None:
        """Scatter the active lanes at distances from an address."""
        text, mask = broadcast(self.function, block, value, lanes).text, self.mask(block)
        if dtype in PLANES:
            distances, mask = complex_lanes.doubled_lanes(self.function, block, distances, mask, lanes)
            dtype, lanes = PLANES[dtype], 2 * lanes
        if dtype == "bool":
            text = self.function.new(block, f"zext {llvm_type(dtype, lanes)} {text} to {memory_type(dtype, lanes)}")
        pointers = self._pointers(block, lanes, dtype, pointer, distances)
        kind = memory_type(dtype, lanes)
        name = f"llvm.masked.scatter.{suffix(memory_type(dtype), lanes)}.v{lanes}p0"
        self.function.library.declare(name, "void", [kind, f"<{lanes} x ptr>", f"<{lanes} x i1>"])
        block.lines.append(
            f"  call void @{name}({kind} {text}, <{lanes} x ptr> align {NUMBERS[dtype].size} {pointers}, "
            f"<{lanes} x i1> {mask or 'splat (i1 true)'})"
        )

    def _off(self, block: Block, dtype: str, pointer: str, lanes: int) -> str:
        """The value of inactive lanes: ones, for which no function takes a slow path.

        If ones may set floating-point flags, the first lane's element: inactive lanes then add no flag.
        """
        kind, size = NUMBERS[dtype], NUMBERS[dtype].size
        if not self.keeps_fp_flags_exact:
            return f"splat ({kind.memory} {constant(kind, 1.0)})" if kind.kind == "float" else "zeroinitializer"
        first = self.function.new(block, f"load {kind.memory}, ptr {pointer}, align {size}")
        return self.function.splat(block, kind.memory, lanes, first)
