"""Vectors of memory that begin within lines of the caches, put together of whole lines.

NumPy's arrays begin anywhere in a line, most often 16 bytes behind one. Each vector that fills a line lies in two of
them then, and processors that bring a whole line a cycle from their second cache take up to twice as long over them
(Emerald Rapids: 2.93 us instead of 1.86 to read 256 kB, 2.08 with products of what is put together). Of runs of vectors
one line more is read than there are vectors, of which no element outside of the run is touched, and each vector is
picked from two lines.
"""

from itertools import pairwise

from jitkernels.graph.emit.blocks import Block, Function, memory_type, suffix
from jitkernels.native.language.types import NUMBERS
from jitkernels.records import record

LINE = 64
"""Bytes of a line of the caches."""
PICKED = {"float": "ps", "double": "pd", "i32": "d", "i64": "q"}
"""By types of LLVM, how x86's instruction is called that picks any elements of two vectors of a line."""


@record
class Shift:
    """How far behind the beginning of a line runs begin, in elements.

    `picks`: the numbers of those that are picked of two lines for a vector; `first` and `last` say which lanes of the
    first line and of the last one are of the run.
    """

    count: str
    picks: str
    first: str
    last: str


@record
class Held:
    """Elements that are taken one by one: the variable that has them, and how many."""

    place: str
    width: int


def shift(function: Function, block: Block, address: str, dtype: str) -> Shift:
    """That of runs, the first of which begins at an address."""
    size, width = NUMBERS[dtype].size, LINE // NUMBERS[dtype].size
    new, lane = function.new, f"i{8 * size}"
    vector = f"<{width} x {lane}>"
    beyond = new(block, f"and i64 {address}, {LINE - 1}")
    count = new(block, f"lshr exact i64 {beyond}, {size.bit_length() - 1}")
    short = count if size == 8 else new(block, f"trunc i64 {count} to {lane}")
    one = new(block, f"insertelement {vector} poison, {lane} {short}, i64 0")
    everywhere = new(block, f"shufflevector {vector} {one}, {vector} poison, <{width} x i32> zeroinitializer")
    numbers = "<" + ", ".join(f"{lane} {number}" for number in range(width)) + ">"
    # As bits of a number: LLVM would compare anew at each step.
    bits = new(block, f"trunc i64 {count} to i{width}")
    on = new(block, f"shl i{width} -1, {bits}")
    off = new(block, f"xor i{width} {on}, -1")
    return Shift(
        count,
        new(block, f"add {vector} {everywhere}, {numbers}"),
        new(block, f"bitcast i{width} {on} to <{width} x i1>"),
        new(block, f"bitcast i{width} {off} to <{width} x i1>"),
    )


def read(function: Function, block: Block, lanes: int, dtype: str, pointer: str, shift: Shift) -> str:
    """So many lanes, whole lines of them, from an address that is `shift` behind the beginning of a line."""
    kind, width = memory_type(dtype), LINE // NUMBERS[dtype].size
    vector, count, new = f"<{width} x {kind}>", lanes // width, function.new
    masked, picked = (
        f"llvm.masked.load.{suffix(kind, width)}.p0",
        f"llvm.x86.avx512.vpermi2var.{PICKED[kind]}.512",
    )
    function.library.declare(masked, vector, ["ptr", f"<{width} x i1>", vector])
    numbers = f"<{width} x i{8 * NUMBERS[dtype].size}>"
    function.library.declare(picked, vector, [vector, numbers, vector])
    back = new(block, f"sub i64 0, {shift.count}")
    line = new(block, f"getelementptr {kind}, ptr {pointer}, i64 {back}")
    lines = []
    for number in range(count + 1):
        at = new(block, f"getelementptr {kind}, ptr {line}, i64 {number * width}") if number else line
        mask = {0: shift.first, count: shift.last}.get(number)
        if mask is None:
            lines.append(new(block, f"load {vector}, ptr {at}, align {LINE}"))
        else:
            given = f"ptr align {LINE} {at}, <{width} x i1> {mask}, {vector} zeroinitializer"
            lines.append(new(block, f"call {vector} @{masked}({given})"))
    parts = [
        new(block, f"call {vector} @{picked}({vector} {one}, {numbers} {shift.picks}, {vector} {other})")
        for one, other in pairwise(lines)
    ]
    return joined(function, block, parts, width, kind)


def hold(function: Function, block: Block, dtype: str, pointer: str, count: str, held: Held) -> None:
    """Let a variable have as many elements as are counted, from an address on, and what fills the vector."""
    kind, width, new = memory_type(dtype), held.width, function.new
    vector, masked = f"<{width} x {kind}>", f"llvm.masked.load.{suffix(kind, width)}.p0"
    function.library.declare(masked, vector, ["ptr", f"<{width} x i1>", vector])
    few, lanes = new(block, f"trunc i64 {count} to i32"), f"<{width} x i32>"
    one = new(block, f"insertelement {lanes} poison, i32 {few}, i64 0")
    everywhere = new(block, f"shufflevector {lanes} {one}, {lanes} poison, {lanes} zeroinitializer")
    numbers = "<" + ", ".join(f"i32 {number}" for number in range(width)) + ">"
    on = new(block, f"icmp ugt {lanes} {everywhere}, {numbers}")
    given = f"ptr align {NUMBERS[dtype].size} {pointer}, <{width} x i1> {on}, {vector} zeroinitializer"
    found = new(block, f"call {vector} @{masked}({given})")
    block.lines.append(f"  store {vector} {found}, ptr {held.place}")


def following(function: Function, block: Block, dtype: str, held: Held) -> str:
    """The next element of those that are held: the vector is turned by one."""
    vector, new = memory_type(dtype, held.width), function.new
    whole = new(block, f"load {vector}, ptr {held.place}")
    order = ", ".join(f"i32 {(number + 1) % held.width}" for number in range(held.width))
    turned = new(block, f"shufflevector {vector} {whole}, {vector} poison, <{held.width} x i32> <{order}>")
    block.lines.append(f"  store {vector} {turned}, ptr {held.place}")
    return new(block, f"extractelement {vector} {whole}, i64 0")


def joined(function: Function, block: Block, parts: list[str], width: int, kind: str) -> str:
    """One vector of a power of two of them, of so many lanes each."""
    while len(parts) > 1:
        vector, order = f"<{width} x {kind}>", ", ".join(f"i32 {i}" for i in range(2 * width))
        parts = [
            function.new(
                block, f"shufflevector {vector} {one}, {vector} {other}, <{2 * width} x i32> <{order}>"
            )
            for one, other in zip(parts[::2], parts[1::2], strict=True)
        ]
        width *= 2
    return parts[0]
