"""Running sums, products and extremes: what they came to is a variable, which every step of a loop adds its element to.

Elements are taken one after another as NumPy takes them, so that results are NumPy's to the last bit: no product is
joined with the addition that it goes into. Where the steps of that very loop are lanes, what is added is computed in
lanes, and added lane by lane.
"""

import math
from typing import Any

from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Register, llvm_type
from jitkernels.graph.emit.conversions import converted, splat, spread
from jitkernels.graph.emit.elementwise import applied
from jitkernels.graph.emit.memory import Memory
from jitkernels.native.language.types import NUMBERS, constant

FLOATS = {"sum": "fadd", "prod": "fmul"}
OPERATIONS = {"sum": "add", "prod": "multiply", "min": "minimum", "max": "maximum"}


def loop_of(place: IndexMap, axis: int) -> int | None:
    """The loop along which a scan runs; None where it has one element."""
    steps = place[axis][1]
    return steps[0][0] if steps else None


def scanned(
    memory: Memory, block: Block, loop: int, kind: str, key: Any, value: tuple[Block, Register]
) -> tuple[Block, Register]:
    """What a scan comes to with an element, and the block that knows it. `key`: the same for all parts of one loop."""
    home = next(one for one in block.path() if one.loop == loop)
    lanes = memory.lanes(home)
    by_lane = memory.lane_loop == loop and lanes > 1
    given = spread(memory.function, value[0], value[1], lanes)
    width = 1 if by_lane else lanes
    place = _variable(memory, home, key, given.dtype, kind, width)
    vector, number = llvm_type(given.dtype, lanes), llvm_type(given.dtype, width)
    total = Register(memory.function.new(home, f"load {number}, ptr {place}"), given.dtype, width)
    if not by_lane:
        total = _joined(memory, home, kind, total, given)
        home.lines.append(f"  store {number} {total.text}, ptr {place}")
        return home, total
    text = "poison"
    for lane in range(lanes):
        one = memory.function.new(home, f"extractelement {vector} {given.text}, i64 {lane}")
        total = _joined(memory, home, kind, total, Register(one, given.dtype))
        text = memory.function.new(home, f"insertelement {vector} {text}, {number} {total.text}, i64 {lane}")
    home.lines.append(f"  store {number} {total.text}, ptr {place}")
    return home, Register(text, given.dtype, lanes)


def _variable(memory: Memory, home: Block, key: Any, dtype: str, kind: str, lanes: int) -> str:
    """The address of what a scan came to so far; it begins in front of the loop with what changes nothing."""
    outer = home.around
    assert outer is not None, "in a loop"
    while outer.loop == -1 and outer.around is not None:
        outer = outer.around
    if key not in outer.known:
        number = llvm_type(dtype, lanes)
        outer.known[key] = memory.function.variable(number)
        first = splat(constant(NUMBERS[dtype], _first(kind, dtype)), llvm_type(dtype), lanes)
        outer.lines.append(f"  store {number} {first}, ptr {outer.known[key]}")
    found: str = outer.known[key]
    return found


def _joined(memory: Memory, block: Block, kind: str, one: Register, other: Register) -> Register:
    if NUMBERS[one.dtype].kind != "float" or kind not in FLOATS:
        found: Register = applied(memory.function, block, OPERATIONS[kind], [one, other], one.dtype)
        return found
    wide = "float32" if one.dtype == "float16" else one.dtype
    left, right = (converted(memory.function, block, each, wide) for each in (one, other))
    number = llvm_type(wide, one.lanes)
    text = memory.function.new(block, f"{FLOATS[kind]} {number} {left.text}, {right.text}")
    return converted(memory.function, block, Register(text, wide, one.lanes), one.dtype)


def _first(kind: str, dtype: str) -> float | int:
    """What changes no element: a negative zero is the sum of nothing and itself."""
    sort = NUMBERS[dtype]
    if kind in ("sum", "prod"):
        number = -0.0 if kind == "sum" else 1.0
        return number if sort.kind == "float" else int(number)
    if sort.kind == "float":
        return math.inf if kind == "min" else -math.inf
    bits = 8 * sort.size - sort.is_signed
    least, largest = (-(1 << bits) if sort.is_signed else 0), (1 << bits) - 1
    return largest if kind == "min" else least
