"""The whole steps of a row that is reduced: one loop, or one after another where the row has many columns.

Sums of floats are taken in parts. Most rows have but one, which is why what joins parts stands behind the loop, where
only long rows get to.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jitkernels.graph.emit.blocks import Block, Function
from jitkernels.graph.emit.loop_text import LoopWriter
from jitkernels.graph.emit.reductions import Accumulator, all_decided

Pairs = Sequence[tuple[Accumulator, Accumulator]]
"""Accumulators as wide as a step, each with the one that has all in the end."""


@dataclass
class Steps:
    """Steps of a loop between limits, of which there are some: lanes of each, those of a part, and what is done."""

    loop: int
    limits: tuple[str, str]
    lanes: int
    length: int
    body: Callable[[Block], None]

    def write(self, writer: LoopWriter, block: Block, begin: str, end: str) -> None:
        """A loop of some of them."""
        writer.counted(block, self.loop, begin, end, self.lanes, self.lanes, self.body, enters=True)

    def end_of_part(self, function: Function, block: Block, begin: str) -> str:
        """Where a part ends."""
        end = self.limits[1]
        ahead = function.new(block, f"add nsw i64 {begin}, {self.length}")
        less = function.new(block, f"icmp slt i64 {ahead}, {end}")
        return function.new(block, f"select i1 {less}, i64 {ahead}, i64 {end}")


def whole_steps(
    writer: LoopWriter, block: Block, steps: Steps, pairs: Pairs, deciding: Sequence[Accumulator]
) -> None:
    """The steps of a row; no part follows when all that are `deciding` have found what they look for."""
    begin, end = steps.limits
    for one, _ in pairs:
        one.begin(block)
    parted = [(one, other) for one, other in pairs if other.has_parts]
    if not parted and not deciding:
        steps.write(writer, block, begin, end)
        _give(block, pairs)
        return
    function = writer.function
    start, until = function.variable("i64"), function.variable("i64")
    again, further, after = (function.label() for _ in range(3))
    part, next_part = Block(block, -1), Block(block, -1)
    first, last = (function.new(part, f"load i64, ptr {place}") for place in (start, until))
    for one, _ in parted:
        one.first = first
    steps.write(writer, part, first, last)
    more = function.new(part, f"icmp slt i64 {last}, {end}")
    if deciding:
        _give(part, parted)
        more = function.new(part, f"select i1 {all_decided(part, deciding)}, i1 false, i1 {more}")
    else:
        _give(next_part, parted)
    for one, other in parted:
        other.next_part(next_part)
        one.begin(next_part)
    first_end, next_end = (
        steps.end_of_part(function, inside, at) for inside, at in ((block, begin), (next_part, last))
    )
    block.lines += [
        f"  store i64 {begin}, ptr {start}",
        f"  store i64 {first_end}, ptr {until}",
        f"  br label %{again}",
        f"{again}:",
        *part.lines,
        f"  br i1 {more}, label %{further}, label %{after}, !prof !8",
        f"{further}:",
        *next_part.lines,
        f"  store i64 {last}, ptr {start}",
        f"  store i64 {next_end}, ptr {until}",
        f"  br label %{again}",
        f"{after}:",
    ]
    _give(block, [(one, other) for one, other in pairs if not (deciding and other.has_parts)])


def _give(block: Block, pairs: Pairs) -> None:
    for one, other in pairs:
        one.give(block, other)
