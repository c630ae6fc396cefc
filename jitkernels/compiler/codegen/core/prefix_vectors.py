"""Loads and stores of the first elements of a vector, on processors that have no fast masked ones of that type.

AMD's processors before Zen 4 execute masked stores in microcode, AVX2 has none of elements of one or two bytes, and
NEON has none at all: LLVM then tests and branches lane by lane. What is behind the last full vector of a loop is a
prefix, so that a test of each bit of its length is enough: half a vector, a quarter, and so on.
"""

from collections.abc import Iterator

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, Prefix, memory_type

MAX_INTEGER_BITS = 128
"""Up to so many bits, parts of a vector are put together in integer registers."""


def store_prefix(function: FunctionBuilder, block: Block, dtype: str, text: str, pointer: str, prefix: Prefix) -> None:
    """Store the first elements of a vector."""
    lanes = prefix.lanes
    kind, size, new = memory_type(dtype), NUMBERS[dtype].size, function.new
    vector, left = f"<{lanes} x {kind}>", function.variable(f"<{lanes} x {kind}>")
    after = _whole_first(function, block, prefix, [f"  store {vector} {text}, ptr {pointer}, align {size}"])
    block.lines.append(f"  store {vector} {text}, ptr {left}")
    for half, offset in _halves(function, block, prefix):
        at = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {offset}")
        value = new(block, f"load {vector}, ptr {left}")
        low = function.shuffle(block, kind, lanes, value, "poison", range(half))
        rest = (number + half if number + half < lanes else "poison" for number in range(lanes))
        block.lines.append(f"  store <{half} x {kind}> {low}, ptr {at}, align {size}")
        block.lines.append(
            f"  store {vector} {function.shuffle(block, kind, lanes, value, 'poison', rest)}, ptr {left}"
        )
    _join(block, after)


def load_prefix(function: FunctionBuilder, block: Block, dtype: str, pointer: str, prefix: Prefix) -> str:
    """Load the first elements of a vector; the others are anything."""
    kind, lanes, size, new = memory_type(dtype), prefix.lanes, NUMBERS[dtype].size, function.new
    vector, whole = f"<{lanes} x {kind}>", Block(block)
    if 8 * lanes * size <= MAX_INTEGER_BITS:
        integer = _load_integer(function, block, 8 * size, pointer, prefix)
        return new(block, f"bitcast i{8 * lanes * size} {integer} to {vector}")
    parts = function.variable(vector)
    value = new(whole, f"load {vector}, ptr {pointer}, align {size}")
    after = _whole_first(function, block, prefix, [*whole.lines, f"  store {vector} {value}, ptr {parts}"])
    for half, offset in _halves(function, block, prefix):
        source, target = (new(block, f"getelementptr {kind}, ptr {base}, i64 {offset}") for base in (pointer, parts))
        piece = new(block, f"load <{half} x {kind}>, ptr {source}, align {size}")
        block.lines.append(f"  store <{half} x {kind}> {piece}, ptr {target}, align {size}")
    _join(block, after)
    return new(block, f"load {vector}, ptr {parts}")


def _load_integer(function: FunctionBuilder, block: Block, bits: int, pointer: str, prefix: Prefix) -> str:
    """Load the first elements of a vector as one integer, zeros behind them: loads wait for narrower stores."""
    new, integer, whole = function.new, f"i{bits * prefix.lanes}", Block(block)
    parts = function.variable(integer)
    block.lines.append(f"  store {integer} 0, ptr {parts}")
    value = new(whole, f"load {integer}, ptr {pointer}, align {bits // 8}")
    after = _whole_first(function, block, prefix, [*whole.lines, f"  store {integer} {value}, ptr {parts}"])
    for half, offset in _halves(function, block, prefix):
        source = new(block, f"getelementptr i{bits}, ptr {pointer}, i64 {offset}")
        piece = new(block, f"load i{bits * half}, ptr {source}, align {bits // 8}")
        distance = new(block, f"mul i64 {offset}, {bits}")
        if bits * prefix.lanes != 64:
            distance = new(block, f"{'trunc' if bits * prefix.lanes < 64 else 'zext'} i64 {distance} to {integer}")
        moved = new(block, f"shl {integer} {new(block, f'zext i{bits * half} {piece} to {integer}')}, {distance}")
        before = new(block, f"load {integer}, ptr {parts}")
        block.lines.append(f"  store {integer} {new(block, f'or {integer} {before}, {moved}')}, ptr {parts}")
    _join(block, after)
    return new(block, f"load {integer}, ptr {parts}")


def _whole_first(function: FunctionBuilder, block: Block, prefix: Prefix, whole: list[str]) -> str:
    """Emit what is done with a whole vector, and begin what is done else; return the label behind both, "" for none."""
    if prefix.is_partial:
        return ""
    is_whole = function.new(block, f"icmp sge i64 {prefix.count}, {prefix.lanes}")
    inside, part, after = (function.label() for _ in range(3))
    block.lines += [f"  br i1 {is_whole}, label %{inside}, label %{part}", f"{inside}:", *whole]
    block.lines += [f"  br label %{after}", f"{part}:"]
    return after


def _halves(function: FunctionBuilder, block: Block, prefix: Prefix) -> Iterator[tuple[int, str]]:
    """Yield how many elements each part has, and its offset, in blocks that run where the prefix has that part."""
    count, half = prefix.count, prefix.lanes // 2
    while half:
        inside, after = function.label(), function.label()
        is_there = function.new(block, f"icmp ne i64 {function.new(block, f'and i64 {count}, {half}')}, 0")
        block.lines += [f"  br i1 {is_there}, label %{inside}, label %{after}", f"{inside}:"]
        yield half, function.new(block, f"and i64 {count}, {-2 * half}")
        _join(block, after)
        half //= 2


def _join(block: Block, after: str) -> None:
    if after:
        block.lines += [f"  br label %{after}", f"{after}:"]
