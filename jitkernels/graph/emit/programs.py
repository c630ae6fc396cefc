"""The functions around the nests of one segment: ``i64 @entry(ptr frame)`` runs one after another, with threads.

A frame is an array of words: addresses of arrays, and values of symbols. Nests read from it what they need.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from jitkernels.errors import BuildError
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.extents import Number
from jitkernels.native import codegen, openmp
from jitkernels.native.language.lanes import Library
from jitkernels.native.link import parsed
from jitkernels.native.source import External

LONG, OFTEN = 1500, 6
"""Characters of a function, and calls of it, from which on it stays one: LLVM would take too long for all copies."""
WORK = 262144
"""What a thread gets at least, in additions: less is done before another thread has woken up."""


@dataclass(frozen=True)
class Fused:
    """The source of a segment: LLVM IR whose ``@entry`` becomes the symbol of the source."""

    name: str
    text: str = field(repr=False)
    vector_bytes: int
    externals: tuple[External, ...] = field(repr=False)
    suffix: ClassVar[str] = ".o"
    has_range: ClassVar[bool] = False

    def object_code(self, symbol: str) -> bytes:
        """The object file. Raises BuildError where LLVM refuses the text, which is a mistake of the emitter."""
        module = parsed(self.name, self.text.replace("@entry(", f"@{symbol}("))
        for function in module.functions:
            if (
                not function.is_declaration
                and function.name != symbol
                and function.linkage.name == "external"
            ):
                raise BuildError(f"{function.name} is visible")
        return codegen.finished(module, symbol, self.externals, self.vector_bytes, codegen.fuse)


@dataclass(frozen=True)
class Call:
    """One nest of a segment: its function, its outermost loop (None if it has to run whole), and all its work."""

    name: str
    extent: Number | None
    work: Number


def segment_text(
    library: Library, texts: Sequence[str], calls: Sequence[Call], places: dict[str, int], *, parallel: bool
) -> str:
    """LLVM IR of a segment, which returns 0, or what is not 0 where a kernel had no memory for its workspace."""
    function = Function(library, places)
    block = function.block
    failed = "0"
    for call in calls:
        if call.extent is None:
            status = function.new(block, f"call i64 @{call.name}(ptr %frame, i64 0, i64 1)")
        elif not parallel:
            extent = function.extent(call.extent)
            status = function.new(block, f"call i64 @{call.name}(ptr %frame, i64 0, i64 {extent})")
        else:
            extent, work = function.extent(call.extent), function.extent(call.work)
            status = function.new(
                block, f"call i64 @shared(ptr %frame, ptr @{call.name}, i64 {extent}, i64 {work})"
            )
        failed = function.new(block, f"or i64 {failed}, {status}")
    body = "\n".join(block.lines)
    entry = f"define i64 @entry(ptr %frame) nounwind {{\n{body}\n  ret i64 {failed}\n}}"
    return "\n".join(
        [
            *([PARALLEL] if parallel else []),
            *texts,
            entry,
            _definitions(library, texts),
            "!0 = distinct !{!0, !1, !2}",
            '!1 = !{!"llvm.loop.unroll.disable"}',
            '!2 = !{!"llvm.loop.vectorize.enable", i1 false}',
            '!8 = !{!"branch_weights", i32 1, i32 1000}',
            '!7 = !{!"branch_weights", i32 1000, i32 1}',
            "",
        ]
    )


def _definitions(library: Library, texts: Sequence[str]) -> str:
    """The scalar code that nests call: a long function that is called often stays a function."""
    whole = "\n".join(texts)
    lines = [*library.declared.values()]
    for symbol, made in library.definitions.items():
        text = made.text
        if len(text) > LONG and whole.count(f" {symbol}(") > OFTEN:
            text = text.replace(" alwaysinline ", " noinline ", 1)
        lines.append(text)
    return "\n".join([*lines, ""])


PARALLEL = f"""declare i64 @jk_team(i64)
declare void @jk_parallel(ptr, ptr, i64)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
define internal i64 @shared(ptr %frame, ptr %nest, i64 %extent, i64 %work) noinline nounwind {{
start:
  %parts = sdiv i64 %work, {WORK}
  %fewer = icmp slt i64 %extent, %parts
  %wanted = select i1 %fewer, i64 %extent, i64 %parts
  %team = call i64 @jk_team(i64 %wanted)
  %several = icmp sgt i64 %team, 1
  br i1 %several, label %fork, label %serial
serial:
  %status = call i64 %nest(ptr %frame, i64 0, i64 %extent)
  ret i64 %status
fork:
  %given = alloca {{ ptr, ptr, i64 }}
  %at1 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 1
  %at2 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 2
  store ptr %frame, ptr %given
  store ptr %nest, ptr %at1
  store i64 %extent, ptr %at2
  call void @jk_parallel(ptr @region, ptr %given, i64 %team)
  ret i64 0
}}
define internal void @region(ptr %given) nounwind {{
start:
  %at1 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 1
  %at2 = getelementptr {{ ptr, ptr, i64 }}, ptr %given, i32 0, i32 2
  %frame = load ptr, ptr %given
  %nest = load ptr, ptr %at1
  %extent = load i64, ptr %at2
  %number32 = call i32 @omp_get_thread_num()
  %team32 = call i32 @omp_get_num_threads()
  %number = sext i32 %number32 to i64
  %team = sext i32 %team32 to i64
  %few = icmp slt i64 %extent, 4096
  %block = select i1 %few, i64 1, i64 64
  %more = add i64 %block, -1
  %padded = add i64 %extent, %more
  %blocks = sdiv i64 %padded, %block
  %first = mul i64 %number, %blocks
  %after = add i64 %first, %blocks
  %low = sdiv i64 %first, %team
  %high = sdiv i64 %after, %team
  %begin = mul i64 %low, %block
  %stop = mul i64 %high, %block
  %over = icmp sgt i64 %stop, %extent
  %end = select i1 %over, i64 %extent, i64 %stop
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %work, label %done
work:
  %status = call i64 %nest(ptr %frame, i64 %begin, i64 %end)
  br label %done
done:
  ret void
}}"""


def externals(*, parallel: bool) -> tuple[External, ...]:
    """What a segment links to."""
    return openmp.externals() if parallel else ()
