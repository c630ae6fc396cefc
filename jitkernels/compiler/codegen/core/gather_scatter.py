"""Elements picked by numbers that are known when code runs: ``a[indices]`` in a nest, as a load at a computed place.

Numbers are counted from the end where they are negative. That they are in bounds is looked at ahead, see
`jitkernels.graph.checks`.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, llvm_type, memory_type
from jitkernels.graph.emit.conversions import splat, spread
from jitkernels.graph.emit.elementwise import applied
from jitkernels.graph.emit.memory import Array, Memory
from jitkernels.graph.extents import Number, same
from jitkernels.native.language.types import NUMBERS, constant


class Index(NamedTuple):
    """Numbers along one dimension: the block that knows them, the dimension's extent and its stride in elements."""

    block: Block
    register: Register
    extent: Number
    stride: Number


def picked(
    memory: Memory, block: Block, array: Array, place: IndexMap, numbers: Sequence[Index]
) -> tuple[Block, Register]:
    """The elements of an array at a place and some numbers, and the block that knows them."""
    moves = [(one.block, _distance(memory, one)) for one in numbers if one.register.lanes == 1]
    apart = [one for one in numbers if one.register.lanes > 1]
    if not apart:
        return memory.loaded(block, array, place, moves)
    home, pointer, step = memory.address(block, array, place, moves)
    for one in apart:
        if len(one.block.path()) > len(home.path()):
            home = one.block
    lanes = apart[0].register.lanes
    total = _total(memory, home, apart, step)
    text = memory.gathered(home, lanes, array.dtype, pointer, total, memory.mask(block))
    return home, memory.from_memory(home, text, array.dtype, lanes)


def put(
    memory: Memory, block: Block, array: Array, place: IndexMap, numbers: Sequence[Index], value: Register
) -> None:
    """Write to elements of an array at a place and some numbers; of lanes that go to one element, the last counts."""
    moves = [(one.block, _distance(memory, one)) for one in numbers if one.register.lanes == 1]
    apart = [one for one in numbers if one.register.lanes > 1]
    _, pointer, step = memory.address(block, array, place, moves)
    lanes = memory.lanes(block)
    if lanes == 1 or not (apart or same(step, 0)):
        memory.written(block, array, pointer, step, value)
        return
    total = _total(memory, block, apart, step) if apart else "zeroinitializer"
    memory.scattered(block, array.dtype, pointer, total, value, lanes)


def added(
    memory: Memory, block: Block, array: Array, place: IndexMap, numbers: Sequence[Index], value: Register
) -> None:
    """Add to elements of an array at a place and some numbers, to one after another where lanes may be equal."""
    moves = [(one.block, _distance(memory, one)) for one in numbers if one.register.lanes == 1]
    apart = [one for one in numbers if one.register.lanes > 1]
    _, pointer, step = memory.address(block, array, place, moves)
    lanes, function = memory.lanes(block), memory.function
    kind, size = memory_type(array.dtype), NUMBERS[array.dtype].size

    def one_more(where: str, own: Register) -> None:
        text = function.new(block, f"load {kind}, ptr {where}, align {size}")
        total = applied(function, block, "add", [Register(text, array.dtype), own], array.dtype)
        block.lines.append(f"  store {kind} {total.text}, ptr {where}, align {size}")

    if lanes == 1:
        one_more(pointer, value)
        return
    values = spread(function, block, value, lanes)
    if not (apart or same(step, 0)):  # no two lanes go to one element
        before = memory.read(block, block, array, pointer, step)
        total = applied(function, block, "add", [before, values], array.dtype)
        memory.written(block, array, pointer, step, total)
        return
    distances = _total(memory, block, apart, step) if apart else splat("0", "i64", lanes)
    vector, places, mask = llvm_type(array.dtype, lanes), f"<{lanes} x i64>", memory.mask(block)
    if mask:  # lanes that are off add what changes nothing to an element that is there
        nothing, on = constant(NUMBERS[array.dtype], -0.0), f"<{lanes} x i1> {mask}"
        text = function.new(block, f"select {on}, {vector} {values.text}, {vector} splat ({kind} {nothing})")
        values = Register(text, array.dtype, lanes)
        distances = function.new(block, f"select {on}, {places} {distances}, {places} zeroinitializer")
    for lane in range(lanes):
        own = function.new(block, f"extractelement {vector} {values.text}, i64 {lane}")
        distance = function.new(block, f"extractelement {places} {distances}, i64 {lane}")
        where = function.new(block, f"getelementptr {kind}, ptr {pointer}, i64 {distance}")
        one_more(where, Register(own, array.dtype))


def _total(memory: Memory, block: Block, apart: Sequence[Index], step: Number) -> str:
    """How far each lane is from the first element."""
    lanes = apart[0].register.lanes
    distances = [_distance(memory, one) for one in apart]
    if not same(step, 0):
        distances.append(memory.lane_distances(step, lanes))
    total = distances[0]
    for distance in distances[1:]:
        total = memory.function.new(block, f"add nsw {llvm_type('int64', lanes)} {total}, {distance}")
    return total


def _distance(memory: Memory, index: Index) -> str:
    """How far the numbers lead from the first element, in elements."""
    function, home, register = memory.function, index.block, index.register
    lanes = register.lanes
    key = "distance", register.text, extents.key_of(index.extent), extents.key_of(index.stride)
    if key not in home.known:
        kind = llvm_type("int64", lanes)

        def everywhere(extent: Number) -> str:
            return spread(function, function.block, Register(function.extent(extent), "int64"), lanes).text

        zero = splat("0", "i64", lanes) if lanes > 1 else "0"
        behind = function.new(home, f"icmp slt {kind} {register.text}, {zero}")
        whole = function.new(home, f"add {kind} {register.text}, {everywhere(index.extent)}")
        bit = llvm_type("bool", lanes)
        text = function.new(home, f"select {bit} {behind}, {kind} {whole}, {kind} {register.text}")
        if not same(index.stride, 1):
            text = function.new(home, f"mul nsw {kind} {text}, {everywhere(index.stride)}")
        home.known[key] = text
    found: str = home.known[key]
    return found
