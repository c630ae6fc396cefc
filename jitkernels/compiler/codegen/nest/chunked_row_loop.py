"""The full vectors of a row reduction: one loop, or a chunked one for rows of many columns.

Sums of floats are blocked (see `Accumulator`). The combination of chunks stands behind the inner loop: rows of one
chunk skip it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jitkernels.compiler.codegen.core.ir_builder import Block, FunctionBuilder
from jitkernels.compiler.codegen.nest.accumulators import Accumulator, all_decided
from jitkernels.compiler.codegen.nest.loop_emitter import LoopEmitter, LoopSpec
from jitkernels.microkernels.maths.blocked_summation import ADDS, PARTS

Pairs = Sequence[tuple[Accumulator, Accumulator]]
"""Pairs of a chunk's accumulator, as wide as an iteration, and the accumulator of the whole row."""


@dataclass
class VectorLoop:
    """A loop of at least one iteration: its limits, lanes per iteration, chunk length, and body."""

    loop: int
    limits: tuple[str, str]
    lanes: int
    length: int
    body: Callable[[Block], None]

    def write(self, writer: LoopEmitter, block: Block, begin: str, end: str) -> None:
        """Emit the loop from `begin` to `end`."""
        writer.emit_loop(block, LoopSpec(self.loop, begin, end, self.lanes, self.lanes, enters=True), self.body)

    def end_of_chunk(self, function: FunctionBuilder, block: Block, begin: str) -> str:
        """The end of the chunk that begins at `begin`."""
        end = self.limits[1]
        ahead = function.new(block, f"add nsw i64 {begin}, {self.length}")
        is_less = function.new(block, f"icmp slt i64 {ahead}, {end}")
        return function.new(block, f"select i1 {is_less}, i64 {ahead}, i64 {end}")


def emit_full_vectors(
    writer: LoopEmitter, block: Block, steps: VectorLoop, pairs: Pairs, deciding: Sequence[Accumulator]
) -> None:
    """Emit the full vectors of a row; stop behind a chunk after which all `deciding` accumulators are decided."""
    begin, end = steps.limits
    for of_chunk, _ in pairs:
        of_chunk.begin(block)
    chunked = [(of_chunk, of_row) for of_chunk, of_row in pairs if of_row.has_parts]
    if not chunked and not deciding:
        steps.write(writer, block, begin, end)
        _combine_pairs(block, pairs)
        return
    function = writer.function
    start, chunk_end = function.variable("i64"), function.variable("i64")
    chunk_label, next_label, after = (function.label() for _ in range(3))
    chunk, next_chunk = Block(block, -1), Block(block, -1)
    first, last = (function.new(chunk, f"load i64, ptr {slot}") for slot in (start, chunk_end))
    for of_chunk, _ in chunked:
        of_chunk.first = first
    steps.write(writer, chunk, first, last)
    more = function.new(chunk, f"icmp slt i64 {last}, {end}")
    if deciding:
        _combine_pairs(chunk, chunked)
        more = function.new(chunk, f"select i1 {all_decided(chunk, deciding)}, i1 false, i1 {more}")
    else:
        _combine_pairs(next_chunk, chunked)
    combine_parts(writer, next_chunk, [other for _, other in chunked], (begin, last), steps.length)
    for of_chunk, _ in chunked:
        of_chunk.begin(next_chunk)
    first_end, next_end = (
        steps.end_of_chunk(function, inside, at) for inside, at in ((block, begin), (next_chunk, last))
    )
    block.lines += [
        f"  store i64 {begin}, ptr {start}",
        f"  store i64 {first_end}, ptr {chunk_end}",
        f"  br label %{chunk_label}",
        f"{chunk_label}:",
        *chunk.lines,
        f"  br i1 {more}, label %{next_label}, label %{after}, !prof !8",
        f"{next_label}:",
        *next_chunk.lines,
        f"  store i64 {last}, ptr {start}",
        f"  store i64 {next_end}, ptr {chunk_end}",
        f"  br label %{chunk_label}",
        f"{after}:",
    ]
    _combine_pairs(block, [(of_chunk, of_row) for of_chunk, of_row in pairs if not (deciding and of_row.has_parts)])


def combine_parts(
    writer: LoopEmitter, block: Block, accumulators: Sequence[Accumulator], limits: tuple[str, str], length: int
) -> None:
    """Begin another part of all sums, and another group after every `PARTS` parts.

    The elements between `limits` were taken, a multiple of `length`: a power of two, the length of a part.
    """
    new, group = writer.function.new, Block(block, -1)
    for accumulator in accumulators:
        accumulator.next_part(block)
        accumulator.next_group(group)
    if group.lines:
        count = new(block, "sub nsw i64 {1}, {0}".format(*limits))
        remainder = new(block, f"and i64 {count}, {PARTS * length - 1}")
        writer._emit_if(block, new(block, f"icmp eq i64 {remainder}, 0"), group.lines)


class PartCounter:
    """Counts at run time the elements that the current part has in each lane, where several loops are reduced."""

    def __init__(self, writer: LoopEmitter, block: Block, accumulators: Sequence[Accumulator]) -> None:
        self.writer, self.accumulators = writer, accumulators
        self.elements, self.parts = (writer.function.variable("i64") for _ in range(2))
        block.lines += [f"  store i64 0, ptr {at}" for at in (self.elements, self.parts)]

    def make_room(self, block: Block, count: str = "") -> None:
        """Make room for `count` elements: begin another part if they do not fit, or if there is no count."""
        new, part = self.writer.function.new, Block(block, -1)
        parts = new(part, f"add nsw i64 {new(part, f'load i64, ptr {self.parts}')}, 1")
        combine_parts(self.writer, part, self.accumulators, ("0", parts), 1)
        part.lines.append(f"  store i64 {parts}, ptr {self.parts}")
        if not count:
            block.lines += part.lines
            return
        before = new(block, f"load i64, ptr {self.elements}")
        after = new(block, f"add nsw i64 {before}, {count}")
        block.lines.append(f"  store i64 {after}, ptr {self.elements}")
        part.lines.append(f"  store i64 {count}, ptr {self.elements}")
        self.writer._emit_if(block, new(block, f"icmp sgt i64 {after}, {ADDS}"), part.lines)


def _combine_pairs(block: Block, pairs: Pairs) -> None:
    for chunk, row in pairs:
        chunk.combine_into(block, row)
