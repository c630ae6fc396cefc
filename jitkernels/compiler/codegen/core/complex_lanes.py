"""Lanes of complex numbers: vectors of twice as many floats, real and imaginary parts in turn, as in memory.

Code moves them whole; what computes takes the two planes apart, and puts planes together for a store.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Prefix, Register, alignment, memory_type
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same

if TYPE_CHECKING:
    from jitkernels.compiler.codegen.core.load_store import Memory


def emit(
    function: FunctionBuilder, block: Block, operation: str, registers: Sequence[Register], dtype: str
) -> Register:
    """Take a plane of complex numbers, or interleave two planes."""
    lanes = registers[0].lanes
    if operation == "complex":
        re, im = (register.text for register in registers)
        if lanes == 1:
            return Register(_pair(function, block, dtype, re, im), dtype)
        order = [lane + part for lane in range(lanes) for part in (0, lanes)]
        return Register(function.shuffle(block, NUMBERS[PLANES[dtype]].llvm, lanes, re, im, order), dtype, lanes)
    (value,), first = registers, int(operation == "imag")
    if lanes == 1:
        text = function.new(block, f"extractelement {memory_type(value.dtype)} {value.text}, i64 {first}")
        return Register(text, dtype)
    kind = NUMBERS[dtype].llvm
    picks = range(first, 2 * lanes, 2)
    return Register(function.shuffle(block, kind, 2 * lanes, value.text, "poison", picks), dtype, lanes)


def _pair(function: FunctionBuilder, block: Block, dtype: str, re: str, im: str) -> str:
    kind, part = memory_type(dtype), NUMBERS[PLANES[dtype]].llvm
    half = function.new(block, f"insertelement {kind} poison, {part} {re}, i64 0")
    return function.new(block, f"insertelement {kind} {half}, {part} {im}, i64 1")


def spread(function: FunctionBuilder, block: Block, value: Register, lanes: int) -> Register:
    """One complex number in all lanes, or each of several in as many adjacent lanes."""
    key = "spread", value.text, value.dtype, lanes
    result: Register | None = block.find(key)
    if result is None:
        times = lanes // value.lanes
        picks = [2 * (lane // times) + part for lane in range(lanes) for part in range(2)]
        kind = NUMBERS[PLANES[value.dtype]].llvm
        text = function.shuffle(block, kind, 2 * value.lanes, value.text, "poison", picks)
        result = block.known[key] = Register(text, value.dtype, lanes)
    return result


def doubled(function: FunctionBuilder, block: Block, mask: str, lanes: int) -> str:
    """The mask of pairs of lanes; "" for none."""
    if not mask:
        return ""
    key = "doubled", mask
    text: str | None = block.find(key)
    if text is None:
        picks = (lane // 2 for lane in range(2 * lanes))
        text = block.known[key] = function.shuffle(block, "i1", lanes, mask, "poison", picks)
        prefix = function.prefixes.get(mask)
        if prefix is not None:
            count = function.new(block, f"shl i64 {prefix.count}, 1")
            function.prefixes[text] = Prefix(count, 2 * lanes, prefix.is_partial)
    return text


def doubled_lanes(function: FunctionBuilder, block: Block, distances: str, mask: str, lanes: int) -> tuple[str, str]:
    """The distances of pairs of floats, from those of complex numbers, and the mask of these lanes."""
    pairs = function.shuffle(block, "i64", lanes, distances, "poison", (lane // 2 for lane in range(2 * lanes)))
    kind = f"<{2 * lanes} x i64>"
    twice = function.new(block, f"shl {kind} {pairs}, splat (i64 1)")
    parts = ", ".join(f"i64 {lane % 2}" for lane in range(2 * lanes))
    return function.new(block, f"or {kind} {twice}, <{parts}>"), doubled(function, block, mask, lanes)


def load(memory: "Memory", home: Block, block: Block, array: StridedArray, pointer: str, stride: Number) -> Register:
    """Load from an address with a lane stride, in block `home`; the mask is that of `block`."""
    function, dtype, lanes, mask = memory.function, array.dtype, memory.lanes(block), memory.mask(block)
    if same(stride, 0):
        return Register(
            function.new(home, f"load {memory_type(dtype)}, ptr {pointer}, align {alignment(dtype)}"), dtype
        )
    if same(stride, 1) and not mask:
        text = function.new(home, f"load {memory_type(dtype, lanes)}, ptr {pointer}, align {alignment(dtype)}")
    elif same(stride, 1):
        pairs = doubled(function, home, mask, lanes)
        text = memory.masked_load(home, 2 * lanes, PLANES[dtype], pointer, pairs, pointer)
    elif mask:
        text = memory.gather_lanes(home, lanes, dtype, pointer, memory.lane_distances(stride, lanes), mask)
    else:
        return _load_each(function, home, dtype, pointer, _steps(function, stride, lanes))
    return Register(text, dtype, lanes)


def store(memory: "Memory", block: Block, array: StridedArray, pointer: str, stride: Number, value: Register) -> None:
    """Store to an address with a lane stride, or the active lanes."""
    function, dtype, lanes, mask = memory.function, array.dtype, value.lanes, memory.mask(block)
    pairs = Register(value.text, PLANES[dtype], 2 * lanes)
    if lanes > 1 and same(stride, 1) and not mask and block.streamed and array.word in block.streamed[0]:
        memory.streamed_store(block, pairs, pointer, block.streamed[1])
    elif lanes == 1 or (same(stride, 1) and not mask):
        kind = memory_type(dtype, lanes)
        block.lines.append(f"  store {kind} {value.text}, ptr {pointer}, align {alignment(dtype)}")
    elif same(stride, 1):
        on = doubled(function, block, mask, lanes)
        memory.masked_store(block, 2 * lanes, PLANES[dtype], value.text, pointer, on)
    elif mask:
        memory.scatter_lanes(block, dtype, pointer, memory.lane_distances(stride, lanes), value, lanes)
    else:
        _store_each(function, block, value, pointer, _steps(function, stride, lanes))


def _steps(function: FunctionBuilder, stride: Number, lanes: int) -> list[str]:
    """Each lane's distance from the first one, as a scalar."""
    if not isinstance(stride, Extent):
        return [str(lane * int(stride)) for lane in range(lanes)]
    home = function.block
    return [function.new(home, f"mul i64 {function.extent(stride)}, {lane}") for lane in range(lanes)]


def listed(function: FunctionBuilder, block: Block, parts: Sequence[Register]) -> Register:
    """A vector of a power of two of complex numbers."""
    dtype, vectors, width = parts[0].dtype, [part.text for part in parts], 2
    kind = NUMBERS[PLANES[dtype]].llvm
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [function.shuffle(block, kind, width, a, b, range(2 * width)) for a, b in pairs]
        width *= 2
    return Register(vectors[0], dtype, len(parts))


def element(function: FunctionBuilder, block: Block, value: Register, lane: int) -> Register:
    """One number of a vector."""
    kind, picks = NUMBERS[PLANES[value.dtype]].llvm, (2 * lane, 2 * lane + 1)
    return Register(function.shuffle(block, kind, 2 * value.lanes, value.text, "poison", picks), value.dtype)


def _load_each(function: FunctionBuilder, block: Block, dtype: str, pointer: str, distances: Sequence[str]) -> Register:
    """Load numbers one by one: each fills a register of its own, which beats gathering their halves."""
    kind, parts = memory_type(dtype), []
    for distance in distances:
        at = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}")
        parts.append(Register(function.new(block, f"load {kind}, ptr {at}, align {alignment(dtype)}"), dtype))
    return listed(function, block, parts)


def _store_each(
    function: FunctionBuilder, block: Block, value: Register, pointer: str, distances: Sequence[str]
) -> None:
    """Store numbers one by one."""
    kind = memory_type(value.dtype)
    for lane, distance in enumerate(distances):
        at = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}")
        number = element(function, block, value, lane).text
        block.lines.append(f"  store {kind} {number}, ptr {at}, align {alignment(value.dtype)}")
