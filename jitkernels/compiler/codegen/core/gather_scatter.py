"""Gather and scatter: ``a[indices]`` in a loop nest, with indices that are loaded at run time.

Negative indices count from the end. `jitkernels.compiler.transforms.bounds_checks` checks the bounds ahead.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core.casts import broadcast, splat
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type, memory_type
from jitkernels.compiler.codegen.core.load_store import Memory
from jitkernels.compiler.codegen.core.scalar_calls import emit_elementwise
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import IndexMap
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, same


class Index(NamedTuple):
    """An index along one dimension: the block that computes it, the dimension's extent and its stride in elements."""

    block: Block
    register: Register
    extent: Number
    stride: Number


def emit_gather(
    memory: Memory, block: Block, array: StridedArray, access_map: IndexMap, indices: Sequence[Index]
) -> tuple[Block, Register]:
    """Gather the elements of an array at an access map plus indices; return the block that computes them too."""
    offsets, lane_indices = _split(memory, indices)
    if not lane_indices:
        return memory.load(block, array, access_map, offsets)
    home, pointer, lane_stride = memory.address(block, array, access_map, offsets)
    for index in lane_indices:
        if len(index.block.path()) > len(home.path()):
            home = index.block
    lanes = lane_indices[0].register.lanes
    total = _total(memory, home, lane_indices, lane_stride)
    text = memory.gather_lanes(home, lanes, array.dtype, pointer, total, memory.mask(block))
    return home, memory.from_memory(home, text, array.dtype, lanes)


def emit_scatter(
    memory: Memory, block: Block, array: StridedArray, access_map: IndexMap, indices: Sequence[Index], value: Register
) -> None:
    """Scatter a value to an access map plus indices; of lanes that hit one element, the last one wins."""
    offsets, lane_indices = _split(memory, indices)
    _, pointer, lane_stride = memory.address(block, array, access_map, offsets)
    lanes = memory.lanes(block)
    if lanes == 1 or not (lane_indices or same(lane_stride, 0)):
        memory.store_at(block, array, pointer, lane_stride, value)
        return
    total = _total(memory, block, lane_indices, lane_stride) if lane_indices else "zeroinitializer"
    memory.scatter_lanes(block, array.dtype, pointer, total, value, lanes)


def emit_scatter_add(
    memory: Memory, block: Block, array: StridedArray, access_map: IndexMap, indices: Sequence[Index], value: Register
) -> None:
    """Scatter-add a value at an access map plus indices, one lane after another where lanes may collide."""
    offsets, lane_indices = _split(memory, indices)
    _, pointer, lane_stride = memory.address(block, array, access_map, offsets)
    lanes, function = memory.lanes(block), memory.function
    kind, size = memory_type(array.dtype), NUMBERS[array.dtype].size

    def add_element(address: str, own: Register) -> None:
        text = function.new(block, f"load {kind}, ptr {address}, align {size}")
        total = emit_elementwise(function, block, "add", [Register(text, array.dtype), own], array.dtype)
        block.lines.append(f"  store {kind} {total.text}, ptr {address}, align {size}")

    if lanes == 1:
        add_element(pointer, value)
        return
    values = broadcast(function, block, value, lanes)
    if not (lane_indices or same(lane_stride, 0)):  # lanes do not collide
        before = memory.load_at(block, block, array, pointer, lane_stride)
        total = emit_elementwise(function, block, "add", [before, values], array.dtype)
        memory.store_at(block, array, pointer, lane_stride, total)
        return
    distances = _total(memory, block, lane_indices, lane_stride) if lane_indices else splat("0", "i64", lanes)
    vector, offset_vector, mask = llvm_type(array.dtype, lanes), f"<{lanes} x i64>", memory.mask(block)
    if mask:  # masked-off lanes add the identity to an element in bounds
        nothing, on = constant(NUMBERS[array.dtype], -0.0), f"<{lanes} x i1> {mask}"
        text = function.new(block, f"select {on}, {vector} {values.text}, {vector} splat ({kind} {nothing})")
        values = Register(text, array.dtype, lanes)
        distances = function.new(block, f"select {on}, {offset_vector} {distances}, {offset_vector} zeroinitializer")
    for lane in range(lanes):
        own = function.new(block, f"extractelement {vector} {values.text}, i64 {lane}")
        distance = function.new(block, f"extractelement {offset_vector} {distances}, i64 {lane}")
        address = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}")
        add_element(address, Register(own, array.dtype))


def _split(memory: Memory, indices: Sequence[Index]) -> tuple[list[tuple[Block, str]], list[Index]]:
    """Split indices into the offsets of scalar ones, each with the block that computes it, and those in lanes."""
    offsets = [(index.block, _distance(memory, index)) for index in indices if index.register.lanes == 1]
    return offsets, [index for index in indices if index.register.lanes > 1]


def _total(memory: Memory, block: Block, lane_indices: Sequence[Index], lane_stride: Number) -> str:
    """Return each lane's distance from the first element."""
    lanes = lane_indices[0].register.lanes
    distances = [_distance(memory, lane_index) for lane_index in lane_indices]
    if not same(lane_stride, 0):
        distances.append(memory.lane_distances(lane_stride, lanes))
    total = distances[0]
    for distance in distances[1:]:
        total = memory.function.new(block, f"add nsw {llvm_type('int64', lanes)} {total}, {distance}")
    return total


def _distance(memory: Memory, index: Index) -> str:
    """Return the distance of an index from the first element, in elements, with negative indices wrapped."""
    function, home, register = memory.function, index.block, index.register
    lanes = register.lanes
    key = "distance", register.text, symbolic_dims.key_of(index.extent), symbolic_dims.key_of(index.stride)
    if key not in home.known:
        kind = llvm_type("int64", lanes)

        def splat_extent(extent: Number) -> str:
            return broadcast(function, function.block, Register(function.extent(extent), "int64"), lanes).text

        zero = splat("0", "i64", lanes) if lanes > 1 else "0"
        is_negative = function.new(home, f"icmp slt {kind} {register.text}, {zero}")
        wrapped = function.new(home, f"add {kind} {register.text}, {splat_extent(index.extent)}")
        bit = llvm_type("bool", lanes)
        text = function.new(home, f"select {bit} {is_negative}, {kind} {wrapped}, {kind} {register.text}")
        if not same(index.stride, 1):
            text = function.new(home, f"mul nsw {kind} {text}, {splat_extent(index.stride)}")
        home.known[key] = text
    cached: str = home.known[key]
    return cached
