"""Scans (cumulative sums, products and extremes): the running value is loop-carried.

Elements are accumulated in NumPy's order, so that results are bitwise equal: no product is contracted into the
addition. Where the scanned loop is the lane loop, inputs are computed in lanes, and accumulated lane by lane.
"""

from typing import Any

from jitkernels.codegen.python.types import NUMBERS, constant
from jitkernels.compiler.codegen.core.casts import broadcast, emit_cast
from jitkernels.compiler.codegen.core.ir_builder import Block, Register, llvm_type
from jitkernels.compiler.codegen.core.load_store import Memory
from jitkernels.compiler.codegen.core.scalar_calls import emit_elementwise
from jitkernels.compiler.transforms.reduction_identity import COMBINING, identity

FLOATS = {"sum": "fadd", "prod": "fmul"}


def emit_scan(
    memory: Memory, block: Block, loop: int, kind: str, key: Any, value: tuple[Block, Register]
) -> tuple[Block, Register]:
    """Return the block that computes a scan, and its value. `key`: identifies the running value within one loop."""
    home = next(element for element in block.path() if element.loop == loop)
    lanes = memory.lanes(home)
    by_lane = memory.lane_loop == loop and lanes > 1
    operand = broadcast(memory.function, value[0], value[1], lanes)
    width = 1 if by_lane else lanes
    slot = _variable(memory, home, key, operand.dtype, kind, width)
    vector, number = llvm_type(operand.dtype, lanes), llvm_type(operand.dtype, width)
    total = Register(memory.function.new(home, f"load {number}, ptr {slot}"), operand.dtype, width)
    if not by_lane:
        total = _joined(memory, home, kind, total, operand)
        home.lines.append(f"  store {number} {total.text}, ptr {slot}")
        return home, total
    text = "poison"
    for lane in range(lanes):
        element = memory.function.new(home, f"extractelement {vector} {operand.text}, i64 {lane}")
        total = _joined(memory, home, kind, total, Register(element, operand.dtype))
        text = memory.function.new(home, f"insertelement {vector} {text}, {number} {total.text}, i64 {lane}")
    home.lines.append(f"  store {number} {total.text}, ptr {slot}")
    return home, Register(text, operand.dtype, lanes)


def _variable(memory: Memory, home: Block, key: Any, dtype: str, kind: str, lanes: int) -> str:
    """The alloca of the running value, initialized with the identity before the loop."""
    outer = home.around
    assert outer is not None, "in a loop"
    while outer.loop == -1 and outer.around is not None:
        outer = outer.around
    if key not in outer.known:
        number = llvm_type(dtype, lanes)
        outer.known[key] = memory.function.variable(number)
        first = constant(NUMBERS[dtype], identity(kind, dtype, -0.0), lanes)
        outer.lines.append(f"  store {number} {first}, ptr {outer.known[key]}")
    result: str = outer.known[key]
    return result


def _joined(memory: Memory, block: Block, kind: str, left_value: Register, right_value: Register) -> Register:
    if NUMBERS[left_value.dtype].kind != "float" or kind not in FLOATS:
        operands = [left_value, right_value]
        result: Register = emit_elementwise(memory.function, block, COMBINING[kind], operands, left_value.dtype)
        return result
    wide = "float32" if left_value.dtype == "float16" else left_value.dtype
    left, right = (emit_cast(memory.function, block, each, wide) for each in (left_value, right_value))
    number = llvm_type(wide, left_value.lanes)
    text = memory.function.new(block, f"{FLOATS[kind]} {number} {left.text}, {right.text}")
    return emit_cast(memory.function, block, Register(text, wide, left_value.lanes), left_value.dtype)
