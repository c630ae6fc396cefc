"""The C entry of a bundle: ``int32 run(const void **inputs, void **outputs, const void *weights, void *arena)``."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jitkernels.codegen.ir_source import LIGHT_PIPELINE, IRSource
from jitkernels.codegen.source_protocol import External, Source, symbol_of


class FrameSlots(NamedTuple):
    """What the frame of a segment contains, and where: `words` slots in all.

    `inputs` and `outputs` are pairs of frame slots and array indices, `weights` and `arena` pairs of frame slots and
    byte offsets, `numbers` constants by their frame slots.
    """

    words: int
    inputs: Sequence[tuple[int, int]]
    outputs: Sequence[tuple[int, int]]
    weights: Sequence[tuple[int, int]]
    arena: Sequence[tuple[int, int]]
    numbers: Mapping[int, int]


def entry_source(name: str, segment: Source, slots: FrameSlots) -> IRSource:
    """LLVM IR that fills the frame of a segment and calls it."""
    lines = [f"  %frame = alloca [{slots.words} x i64], align 64"]

    def put(word: int, value: str) -> None:
        lines.append(f"  %word{word} = getelementptr i64, ptr %frame, i64 {word}")
        lines.append(f"  store {value}, ptr %word{word}")

    for pointer, arrays in (("inputs", slots.inputs), ("outputs", slots.outputs)):
        for word, number in arrays:
            lines.append(f"  %{pointer}{number}.at{word} = getelementptr ptr, ptr %{pointer}, i64 {number}")
            lines.append(f"  %{pointer}{number}.{word} = load ptr, ptr %{pointer}{number}.at{word}")
            put(word, f"ptr %{pointer}{number}.{word}")
    for pointer, blocks in (("weights", slots.weights), ("arena", slots.arena)):
        for word, offset in blocks:
            lines.append(f"  %{pointer}.{word} = getelementptr i8, ptr %{pointer}, i64 {offset}")
            put(word, f"ptr %{pointer}.{word}")
    for word, value in slots.numbers.items():
        put(word, f"i64 {value}")
    symbol = symbol_of(segment)
    body = "\n".join(lines)
    text = f"""{LIGHT_PIPELINE}declare i64 @{symbol}(ptr)
define i32 @entry(ptr %inputs, ptr %outputs, ptr %weights, ptr %arena) nounwind {{
{body}
  %status = call i64 @{symbol}(ptr %frame)
  %short = trunc i64 %status to i32
  ret i32 %short
}}
"""
    return IRSource(name, text, (External(symbol, "int64", ("void*",), lambda: 0, lambda: segment),))
