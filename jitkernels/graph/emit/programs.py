"""The functions around the nests of one segment: ``i64 @entry(ptr frame)`` runs one after another, with threads.

A frame is an array of words: addresses of arrays, and values of symbols. Nests read from it what they need.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

from jitkernels.errors import BuildError
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.extents import Number
from jitkernels.native import codegen, openmp
from jitkernels.native.language import alone
from jitkernels.native.language.lanes import Library
from jitkernels.native.link import parsed
from jitkernels.native.source import External
from jitkernels.records import record

LONG, OFTEN = 1500, 6
"""Characters of a function, and calls of it, from which on it stays one: LLVM would take too long for all copies."""


@record
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


@record
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
                block, f"call i64 @jk_share(ptr %frame, ptr @{call.name}, i64 {extent}, i64 {work})"
            )
        failed = function.new(block, f"or i64 {failed}, {status}")
    body = "\n".join(block.lines)
    entry = f"define i64 @entry(ptr %frame) nounwind {{\n{body}\n  ret i64 {failed}\n}}"
    return "\n".join(
        [
            *(["declare i64 @jk_share(ptr, ptr, i64, i64)"] if parallel else []),
            *texts,
            entry,
            _definitions(library, texts),
            "!0 = distinct !{!0, !1, !2}",
            '!1 = !{!"llvm.loop.unroll.disable"}',
            '!2 = !{!"llvm.loop.vectorize.enable", i1 false}',
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


def externals(library: Library, *, parallel: bool) -> tuple[External, ...]:
    """What a segment links to."""
    return (*alone.externals(library), *([openmp.sharing_function()] if parallel else []))
