"""Aligned loads of misaligned arrays: load whole cache lines, and permute each pair of lines into a vector.

NumPy's arrays begin anywhere in a cache line, most often 16 bytes into one. Each 64-byte vector then straddles two
lines, and processors that fetch one line per cycle from L2 take up to twice as long (Emerald Rapids: 2.93 us instead
of 1.86 to read 256 kB, 2.08 with permuted vectors). A run of n vectors loads n + 1 lines, with the lanes outside of
the run masked off, and permutes each vector from two neighbouring lines.
"""

from itertools import pairwise

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder, LaneMask, memory_type
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.core.frozen_dataclass import frozen_dataclass

PICKED = {"float": "ps", "double": "pd", "i32": "d", "i64": "q"}
"""By LLVM type, the suffix of AVX-512's two-source permute `vpermi2var`."""


@frozen_dataclass
class Misalignment:
    """The offset of a run from the beginning of its cache line, in elements.

    `picks`: the indices by which a vector is permuted from two lines; `first` and `last`: masks of the lanes of the
    first and of the last line that belong to the run.
    """

    count: str
    picks: str
    first: str
    last: str


@frozen_dataclass
class RotatingVector:
    """A vector of elements that a loop consumes one by one: its alloca, and its lanes."""

    slot: str
    width: int


def misalignment_of(function: FunctionBuilder, block: Block, address: str, dtype: str) -> Misalignment:
    """Return the misalignment of a run that begins at `address`."""
    size, width = NUMBERS[dtype].size, CACHE_LINE_BYTES // NUMBERS[dtype].size
    new, lane = function.new, f"i{8 * size}"
    offset = new(block, f"and i64 {address}, {CACHE_LINE_BYTES - 1}")
    count = new(block, f"lshr exact i64 {offset}, {size.bit_length() - 1}")
    narrow = count if size == 8 else new(block, f"trunc i64 {count} to {lane}")
    splat_count = function.splat(block, lane, width, narrow)
    numbers = "<" + ", ".join(f"{lane} {number}" for number in range(width)) + ">"
    # Masks as integers: LLVM would repeat vector comparisons in each iteration.
    bits = new(block, f"trunc i64 {count} to i{width}")
    in_last = new(block, f"shl i{width} -1, {bits}")
    in_first = new(block, f"xor i{width} {in_last}, -1")
    return Misalignment(
        count,
        new(block, f"add <{width} x {lane}> {splat_count}, {numbers}"),
        new(block, f"bitcast i{width} {in_last} to <{width} x i1>"),
        new(block, f"bitcast i{width} {in_first} to <{width} x i1>"),
    )


def load_lines(
    function: FunctionBuilder, block: Block, lanes: int, dtype: str, pointer: str, shift: Misalignment
) -> str:
    """Load `lanes` lanes, whole cache lines of them, from an address with the given misalignment."""
    kind, width = memory_type(dtype), CACHE_LINE_BYTES // NUMBERS[dtype].size
    vector, count, new = f"<{width} x {kind}>", lanes // width, function.new
    negative_count = new(block, f"sub i64 0, {shift.count}")
    line = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {negative_count}")
    lines = []
    for number in range(count + 1):
        address = new(block, f"getelementptr {kind}, ptr {line}, i64 {number * width}") if number else line
        mask = {0: shift.first, count: shift.last}.get(number)
        if mask is None:
            lines.append(new(block, f"load {vector}, ptr {address}, align {CACHE_LINE_BYTES}"))
        else:
            lines.append(function.masked_load(block, kind, address, CACHE_LINE_BYTES, LaneMask(width, mask)))
    picked, numbers = f"llvm.x86.avx512.vpermi2var.{PICKED[kind]}.512", f"<{width} x i{8 * NUMBERS[dtype].size}>"
    function.library.declare(picked, vector, [vector, numbers, vector])
    parts = [
        new(block, f"call {vector} @{picked}({vector} {low}, {numbers} {shift.picks}, {vector} {high})")
        for low, high in pairwise(lines)
    ]
    return concatenate_vectors(function, block, parts, width, kind)


def load_rotating(
    function: FunctionBuilder, block: Block, dtype: str, pointer: str, count: str, held: RotatingVector
) -> None:
    """Load up to a vector of elements from `pointer` into an alloca, with zeros behind `count` elements."""
    kind, width, new = memory_type(dtype), held.width, function.new
    splat_count = function.splat(block, "i32", width, new(block, f"trunc i64 {count} to i32"))
    numbers = "<" + ", ".join(f"i32 {number}" for number in range(width)) + ">"
    mask = new(block, f"icmp ugt <{width} x i32> {splat_count}, {numbers}")
    loaded = function.masked_load(block, kind, pointer, NUMBERS[dtype].size, LaneMask(width, mask))
    block.lines.append(f"  store <{width} x {kind}> {loaded}, ptr {held.slot}")


def next_element(function: FunctionBuilder, block: Block, dtype: str, held: RotatingVector) -> str:
    """Return the next element of a `RotatingVector`, and rotate the vector by one lane."""
    vector, new = memory_type(dtype, held.width), function.new
    vector_value = new(block, f"load {vector}, ptr {held.slot}")
    numbers = ((number + 1) % held.width for number in range(held.width))
    rotated = function.shuffle(block, memory_type(dtype), held.width, vector_value, "poison", numbers)
    block.lines.append(f"  store {vector} {rotated}, ptr {held.slot}")
    return new(block, f"extractelement {vector} {vector_value}, i64 0")


def concatenate_vectors(function: FunctionBuilder, block: Block, parts: list[str], width: int, kind: str) -> str:
    """Concatenate a power of two of vectors of `width` lanes each."""
    while len(parts) > 1:
        parts = [
            function.shuffle(block, kind, width, part, high, range(2 * width))
            for part, high in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]
