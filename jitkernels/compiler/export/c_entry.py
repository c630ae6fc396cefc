"""The function of a bundle: ``int32 run(const void **inputs, void **outputs, const void *weights, void *arena)``."""

from collections.abc import Mapping, Sequence

from jitkernels.native.ir import STRAIGHT, IRSource
from jitkernels.native.source import External, Source, symbol_of


def entry_source(
    name: str,
    segment: Source,
    words: int,
    inputs: Sequence[tuple[int, int]],
    outputs: Sequence[tuple[int, int]],
    weights: Sequence[tuple[int, int]],
    arena: Sequence[tuple[int, int]],
    numbers: Mapping[int, int],
) -> IRSource:
    """LLVM IR that fills the frame of a segment and calls that.

    `inputs` and `outputs` are words of the frame and the numbers of arrays, `weights` and `arena` words and offsets in
    bytes, `numbers` what words are whatever is given.
    """
    lines = [f"  %frame = alloca [{words} x i64], align 64"]

    def put(word: int, value: str) -> None:
        lines.append(f"  %word{word} = getelementptr i64, ptr %frame, i64 {word}")
        lines.append(f"  store {value}, ptr %word{word}")

    for given, listed in (("inputs", inputs), ("outputs", outputs)):
        for word, number in listed:
            lines.append(f"  %{given}{number}.at{word} = getelementptr ptr, ptr %{given}, i64 {number}")
            lines.append(f"  %{given}{number}.{word} = load ptr, ptr %{given}{number}.at{word}")
            put(word, f"ptr %{given}{number}.{word}")
    for given, listed in (("weights", weights), ("arena", arena)):
        for word, offset in listed:
            lines.append(f"  %{given}.{word} = getelementptr i8, ptr %{given}, i64 {offset}")
            put(word, f"ptr %{given}.{word}")
    for word, value in numbers.items():
        put(word, f"i64 {value}")
    symbol = symbol_of(segment)
    body = "\n".join(lines)
    text = f"""{STRAIGHT}declare i64 @{symbol}(ptr)
define i32 @entry(ptr %inputs, ptr %outputs, ptr %weights, ptr %arena) nounwind {{
{body}
  %status = call i64 @{symbol}(ptr %frame)
  %short = trunc i64 %status to i32
  ret i32 %short
}}
"""
    return IRSource(name, text, (External(symbol, "int64", ("void*",), lambda: 0, lambda: segment),))
