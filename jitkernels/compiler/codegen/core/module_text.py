"""The functions around the nests of one segment: ``i64 @entry(ptr frame)`` runs one after another, with threads.

A frame is an array of words: addresses of arrays, and values of symbols. Nests read from it what they need.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

from jitkernels.errors import BuildError
from jitkernels.graph.emit import alike, clock, runs
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.polls import REFUSED
from jitkernels.graph.emit.runs import Call
from jitkernels.graph.extents import Number
from jitkernels.native import entry, openmp, passes
from jitkernels.native.language import alone
from jitkernels.native.language.lanes import Library
from jitkernels.native.source import External
from jitkernels.records import record

LONG, OFTEN = 1500, 6
"""Characters of a function, and calls of it, from which on it stays one: LLVM would take too long for all copies."""

NESTS, MANY = "; what is written as it should run:\n", 150_000
"""What stands before nests that go through the passes that they need alone, as they do in much code, where LLVM hurries
besides: each loop is a small part of the time. From so many characters on it is much.
"""
_HEAD = re.compile(r"^define (i64 @\S+\(ptr [^)]*\))", re.MULTILINE)


@record
class Fused:
    """The source of a segment: LLVM IR whose ``@entry`` becomes the symbol of the source.

    It begins with what becomes of it, as the text is the key of the code. `level`: see `codegen.target_machine`.
    `is_whole`: it goes through all of LLVM's passes, and not just those that nests need; `unrolls`: rounds of its
    loops may stand several times in the code.
    """

    name: str
    packed: bytes = field(repr=False)
    vector_bytes: int
    externals: tuple[External, ...] = field(repr=False)
    level: int = 3
    is_whole: bool = False
    unrolls: bool = True
    suffix: ClassVar[str] = ".o"
    has_range: ClassVar[bool] = False

    @property
    def text(self) -> str:
        """The LLVM IR, which is seldom needed once there is code, and is most of what a program would take."""
        return zlib.decompress(self.packed).decode()

    def object_code(self, symbol: str) -> bytes:
        """The object file. Raises BuildError where LLVM refuses the text, which is a mistake of the emitter."""
        from jitkernels.native import codegen, link

        text, _, nests = self.text.replace("@entry(", f"@{symbol}(").partition(NESTS)
        module, *apart = link.parts_of(self.name, text, *([nests] if nests else []))
        for function in module.functions:
            if (
                not function.is_declaration
                and function.name != symbol
                and function.linkage.name == "external"
            ):
                raise BuildError(f"{function.name} is visible")

        def improve(module: Any, target: Any) -> None:
            if self.is_whole:
                codegen.optimise(module, target, unrolls=self.unrolls)
            else:
                codegen.fuse(module, target)
            for other in apart:
                codegen.fuse(other, target)
            if apart:
                link.link_in(self.name, module, apart, [symbol])

        return codegen.finished(
            module, symbol, self.externals, self.vector_bytes, improve, self.level, reduces=not apart
        )


def fused(
    name: str,
    text: str,
    vector_bytes: int,
    externals: tuple[External, ...],
    level: int = 3,
    *,
    is_whole: bool = False,
    unrolls: bool = True,
) -> Fused:
    """A source of LLVM IR."""
    names = (
        ("all", "passes", *(() if unrolls else ("but", "unrolling"))) if is_whole else passes.INLINING_PASSES
    )
    whole = f"{passes.recipe(names, vector_bytes, level)}{text}"
    return Fused(name, zlib.compress(whole.encode(), 1), vector_bytes, externals, level, is_whole, unrolls)


@record
class Unit:
    """What was emitted for a segment: the scalar code and the functions of its nests, and how these are called."""

    library: Library
    texts: Sequence[str]
    calls: Sequence[Call]


Asked = tuple[External, Sequence[Number]]
"""What says whether that is built which a call with some sizes needs, and these."""


def segment_text(
    library: Library,
    nests: Sequence[str],
    flows: Sequence[str],
    calls: Sequence[Call],
    places: dict[str, int],
    overlap: runs.Overlap,
    asked: Sequence[Asked],
    *,
    parallel: bool,
) -> str:
    """LLVM IR of a segment: of its nests, of its loops and branches, and of what calls these one after another.

    It returns 0, `REFUSED`, `FULL`, `polls.INTERRUPTED`, or an odd number where a kernel had no memory to work in; and
    `MISSING` at once if something that is `asked` for is not there.
    """
    function = Function(library, places)
    block = function.block
    for check, sizes in asked:
        _ask(function, check, sizes)
    failed, rest = "0", ""
    together: list[str] = []
    for several in runs.runs_of(calls, overlap) if parallel else calls:
        if not isinstance(several, Call):
            texts, status = runs.run_text(function, several, f"run{len(together)}")
            together += texts
            failed = function.new(block, f"or i64 {failed}, {status}")
            continue
        call = several
        places_of_checks = [_place_of_check(function, word) for word in call.checks]
        began = call.clock.start(partial(function.new, block)) if call.clock else ""
        if call.extent is None:
            status = function.new(block, f"call i64 @{call.name}(ptr %frame, i64 0, i64 1)")
        elif not parallel:
            extent = function.extent(call.extent)
            status = function.new(block, f"call i64 @{call.name}(ptr %frame, i64 0, i64 {extent})")
        else:
            extent, work = function.extent(call.extent), function.extent(call.work)
            status = function.new(
                block,
                f"call i64 @jk_share(ptr %frame, ptr @{call.name}, i64 {extent}, i64 {call.unit}, i64 {work})",
            )
        if call.clock:
            block.lines.append(call.clock.stop(began))
        if call.refuses:
            fine, label = function.new(block, f"icmp eq i64 {status}, 0"), function.label()
            ends = function.label()
            block.lines += [f"  br i1 {fine}, label %{label}, label %{ends}, !prof !7", f"{ends}:"]
            block.lines += [f"  ret i64 {status}", f"{label}:"]
        failed = function.new(block, f"or i64 {failed}, {status}")
        for place in places_of_checks:
            found = function.new(block, f"load i8, ptr {place}")
            fine, label = function.new(block, f"icmp eq i8 {found}, 0"), function.label()
            block.lines += [f"  br i1 {fine}, label %{label}, label %refused", f"{label}:"]
    if any(call.checks for call in calls):
        rest = f"\nrefused:\n  ret i64 {REFUSED}"
    body = "\n".join([*function.memory, *block.lines])
    entry = f"define i64 @entry(ptr noalias %frame) nounwind {{\n{body}\n  ret i64 {failed}{rest}\n}}"
    sharing = ["declare i64 @jk_share(ptr, ptr, i64, i64, i64)"] if parallel else []
    own = [*[text for text in nests if _is_inlined(text)], *flows, *together, entry]
    nests = [text for text in nests if not _is_inlined(text)]
    if openmp.SHARE_RUN in entry:
        own = [f"declare i64 @{openmp.SHARE_RUN}(ptr, ptr, i64)", *own]
    if flows and sum(map(len, (*nests, *flows))) > MANY:
        shown = [text.replace("define internal ", "define ") for text in alike.shared(nests)]
        declared = [f"declare {head} nounwind" for text in shown for head in _HEAD.findall(text)]
        return f"{unit_text(library, [*sharing, *declared, *own])}{NESTS}{unit_text(library, [*sharing, *shown])}"
    texts = [*sharing, *nests, *own]
    if len(calls) == 1 and (calls[0].extent is None or not parallel):
        texts = [inlined(text) for text in texts]
    return unit_text(library, texts)


def _ask(function: Function, check: External, sizes: Sequence[Number]) -> None:
    """Return if code for some sizes is not there. What else its arguments are does not matter."""
    kinds = entry.types_of(check.arguments)
    block = function.block
    given = [*map(function.extent, sizes)]
    passed = [
        "ptr null" if kind.startswith("ptr") else f"i64 {given.pop(0) if given else 0}" for kind in kinds
    ]
    function.library.declare(
        check.symbol, "i64", ["ptr" if kind.startswith("ptr") else kind for kind in kinds]
    )
    status = function.new(block, f"call i64 @{check.symbol}({', '.join(passed)})")
    fine, label, lacks = function.new(block, f"icmp eq i64 {status}, 0"), function.label(), function.label()
    block.lines += [f"  br i1 {fine}, label %{label}, label %{lacks}, !prof !7"]
    block.lines += [f"{lacks}:", f"  ret i64 {status}", f"{label}:"]


def inlined(text: str) -> str:
    """The text of a function as one that becomes part of those that call it."""
    return text.replace(" noinline ", " alwaysinline ", 1)


def _is_inlined(text: str) -> bool:
    return " alwaysinline " in text[: text.index("\n")]


def unit_text(library: Library, texts: Sequence[str]) -> str:
    """LLVM IR of functions, with the scalar code that they call."""
    return "\n".join(
        [
            *texts,
            _definitions(library, texts),
            "!0 = distinct !{!0, !1, !2}",
            '!1 = !{!"llvm.loop.unroll.disable"}',
            '!2 = !{!"llvm.loop.vectorize.enable", i1 false}',
            "!3 = !{i32 1}",
            '!4 = !{!"branch_weights", i32 1, i32 1000}',
            '!8 = !{!"branch_weights", i32 1, i32 1000}',
            '!7 = !{!"branch_weights", i32 1000, i32 1}',
            "",
        ]
    )


def _place_of_check(function: Function, word: int) -> str:
    """Where a nest writes whether something is refused."""
    place = function.variable("i64")
    at = function.new(function.block, f"getelementptr i64, ptr %frame, i64 {word}")
    function.block.lines.append(f"  store ptr {place}, ptr {at}")
    return place


def _definitions(library: Library, texts: Sequence[str]) -> str:
    """The scalar code that nests call: a long function that is called often stays a function."""
    whole = "\n".join(texts)
    lines = [*library.declared.values()]
    if "@jk_took(" in whole:
        lines.append(clock.text(clock.STOP))
    for symbol, made in library.definitions.items():
        text = made.text
        if len(text) > LONG and whole.count(f" {symbol}(") > OFTEN:
            text = text.replace(" alwaysinline ", " noinline ", 1)
        lines.append(text)
    return "\n".join([*lines, ""])


def externals(library: Library, *, parallel: bool) -> tuple[External, ...]:
    """What a segment links to."""
    return (
        *alone.externals(library),
        *([openmp.sharing_function(), openmp.run_function()] if parallel else []),
    )
