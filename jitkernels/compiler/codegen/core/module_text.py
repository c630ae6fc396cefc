"""The LLVM module of one segment: ``i64 @entry(ptr frame)`` runs its loop nests one after another, on the thread pool.

A frame is an array of words: addresses of arrays, and values of symbols. Loop nests load what they need from it.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from typing import ClassVar

from jitkernels.codegen import compile_ahead, entry_points, llvm_passes, numba_functions
from jitkernels.codegen.compile_job import CompileJob, gives_bitcode
from jitkernels.codegen.compiling import compiled
from jitkernels.codegen.python import outlined
from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.codegen.control_flow.signal_polls import REFUSED
from jitkernels.compiler.codegen.core import cycle_counter, outline_identical_nests, parallel_region, split_module
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.codegen.core.parallel_region import SegmentCall
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.runtime.threads import team_size

MAX_INLINE_CHARS, MAX_INLINE_CALLS = 1500, 6
"""A function of so many characters with so many calls is not inlined: LLVM would take too long for all copies."""

NESTS_MARKER = "; what is written as it should run:\n"
"""The marker before loop nests of a segment with loops or branches: LLVM optimizes these, the nests get only the passes
that they need, as where there are no loops around them, and no strength reduction. All passes would take most of the
time that LLVM takes. Behind a second marker are those of a module of their own (`split_module`).
"""
MIN_SEPARATE_CHARS = 16_000
"""The characters from which on nests are optimized apart: of fewer, LLVM takes milliseconds to know what they do."""
_HEAD = re.compile(r"^define (i64 @(\S+)\(ptr [^)]*\))", re.MULTILINE)
_CONSTANT_RANGE = re.compile(r"call i64 @(\S+)\(ptr [^,]*, i64 \d+, i64 \d+\)")
"""Calls of nests for a range that is known: LLVM makes code for this range, so that these nests are with the loops."""
NEVER_FAILS = "range(i64 0, 1) "
"""The attribute of the status of nests that return 0 alone."""


@frozen_dataclass
class Fused:
    """The source of a segment: LLVM IR whose ``@entry`` becomes the symbol of the source.

    The text begins with the pass recipe, as it is the cache key. `level`: see `codegen.target_machine`. `is_whole`:
    run all of LLVM's passes, not only those that loop nests need; `unrolls`: allow loop unrolling.
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
        """The LLVM IR, decompressed: it is rarely needed, and would take most of a program's memory."""
        return zlib.decompress(self.packed).decode()

    def object_code(self, symbol: str) -> bytes:
        """Compile to object code. Raises BuildError if LLVM rejects the text, which is a bug of the emitter."""
        text, *units = self.text.replace("@entry(", f"@{symbol}(").split(NESTS_MARKER)
        by_numba: list[str] = []
        if any(numba_functions.MARK in part for part in (text, *units)):
            from jitkernels.codegen import numba_lowering  # not for those who print no Python

            by_numba = numba_lowering.compiled_in("\n".join([text, *units]), self.vector_bytes)
        calls = tuple(external.symbol for external in self.externals)
        job = CompileJob(
            self.name,
            symbol,
            (text,),
            calls,
            "optimize" if self.is_whole else "fuse",
            apart=tuple(units),
            optimized=tuple(by_numba),
            vector_bytes=self.vector_bytes,
            level=self.level,
            unrolls=self.unrolls,
            versions_strides=False,
            reduces=self.is_whole,
            hides_functions=True,
        )
        if len(units) < 2 or by_numba or gives_bitcode():
            return compiled(job)
        shown = split_module.functions_of([line for line in units[1].splitlines() if line.startswith("define i64 @")])
        text, nests, second = (split_module.qualified(part, {*shown}, symbol) for part in (text, *units))
        names = tuple(f"{symbol}.{name}" for name in shown)
        return compile_ahead.compiled_in_parts(
            replace(job, parts=(text,), apart=(nests,) if nests.strip() else (), externals=(*calls, *names)),
            CompileJob(
                self.name,
                f"{symbol}_nests",
                (second,),
                calls,
                "fuse",
                visible=names,
                vector_bytes=self.vector_bytes,
                level=self.level,
                reduces=False,
            ),
        )


def module_source(
    name: str,
    text: str,
    vector_bytes: int,
    externals: tuple[External, ...],
    level: int = 3,
    *,
    is_whole: bool = False,
    unrolls: bool = True,
) -> Fused:
    """Make a source of LLVM IR."""
    names: Sequence[str] = (*llvm_passes.INLINING_PASSES, "without", "strength", "reduction")
    if is_whole:
        names = ("all", "passes", "but", "stride", "versions", *(() if unrolls else ("unrolling",)))
    whole = f"{llvm_passes.recipe(names, vector_bytes, level)}{text}"
    return Fused(name, zlib.compress(whole.encode(), 1), vector_bytes, externals, level, is_whole, unrolls)


RequiredCode = tuple[External, Sequence[Number]]
"""A function that checks whether the code for a call with some sizes is built, and these sizes."""


@frozen_dataclass
class SegmentParts:
    """The emitted parts of a segment: the library, the functions of its loop nests, of its loops and branches, calls.

    `required`: the code that must be built before the segment runs.
    """

    library: Library
    texts: Sequence[str]
    calls: Sequence[SegmentCall]
    flows: Sequence[str]
    required: Sequence[RequiredCode]


def segment_text(
    parts: SegmentParts, symbol_slots: dict[str, int], overlap: parallel_region.Overlap, *, parallel: bool
) -> str:
    """Return the LLVM IR of a segment: its loop nests, its loops and branches, and the entry that calls them in order.

    The entry returns 0, `REFUSED`, `FULL`, `INTERRUPTED`, or an odd number if a kernel could not allocate its
    workspace; and `MISSING` at once if some required code is not built.
    """
    library, flows, calls = parts.library, parts.flows, parts.calls
    function = FunctionBuilder(library, symbol_slots)
    _require_built(function, parts.required)
    failed, regions = "0", list[str]()
    for region in parallel_region.regions_of(calls, overlap) if parallel else calls:
        if isinstance(region, SegmentCall):
            failed = _emit_call(function, region, failed, parallel=parallel)
        else:
            texts, status = parallel_region.region_text(function, region, f"region{len(regions)}")
            regions += texts
            failed = function.new(function.block, f"or i64 {failed}, {status}")
    bailout_block = f"\nrefused:\n  ret i64 {REFUSED}" if any(call.checks for call in calls) else ""
    body = "\n".join([*function.memory, *function.block.lines])
    entry = f"define i64 @entry(ptr noalias %frame) nounwind {{\n{body}\n  ret i64 {failed}{bailout_block}\n}}"
    sharing = ["declare i64 @jk_share(ptr, ptr, i64, i64, i64)"] if parallel else []
    whole = {name for text in (*flows, *regions, entry) for name in _CONSTANT_RANGE.findall(text)}
    nests = [text for text in parts.texts if not (_is_inlined(text) or _name_of(text) in whole)]
    own = [*[text for text in parts.texts if text not in nests], *flows, *regions, entry]
    if team_size.SHARE_RUN in entry:
        own = [f"declare i64 @{team_size.SHARE_RUN}(ptr, ptr, i64)", *own]
    if flows and sum(map(len, nests)) >= MIN_SEPARATE_CHARS:
        shown = _shown(outline_identical_nests.outline_congruent(nests))
        with_loops, second = split_module.split_nests(shown, own, is_optimized=True)
        units = [with_loops, second] if second else [with_loops]
        return NESTS_MARKER.join(
            unit_text(library, [*sharing, *texts]) for texts in ([*_declarations(shown), *own], *units)
        )
    texts = [*sharing, *nests, *own]
    if len(calls) == 1 and (calls[0].extent is None or not parallel):
        return unit_text(library, [mark_inlined(text) for text in texts])
    if flows:
        return unit_text(library, texts)
    nests = [text for text in parts.texts if not _is_inlined(text)]
    own = [text for text in own if text not in nests]
    first, second = split_module.split_nests(nests, own, is_optimized=False)
    if not second:
        return unit_text(library, texts)
    second = _shown(second)
    own = [*sharing, *_declarations(second), *first, *own]
    return NESTS_MARKER.join([unit_text(library, own), "", unit_text(library, [*sharing, *second])])


def _shown(nests: Sequence[str]) -> list[str]:
    """The nests as functions that other modules can call."""
    return [text.replace("define internal ", "define ") for text in nests]


def _declarations(nests: Sequence[str]) -> list[str]:
    """The declarations of nests of another module."""
    return [
        f"declare {'' if text.count(' ret ') > text.count(' ret i64 0') else NEVER_FAILS}{head} nounwind"
        for text in nests
        for head, _ in _HEAD.findall(text)
    ]


def _emit_call(function: FunctionBuilder, call: SegmentCall, failed: str, *, parallel: bool) -> str:
    """Emit the call of a nest in the entry, and bail out if it does; return the status of all calls so far."""
    block, new = function.block, partial(function.new, function.block)
    flags = [_check_flag(function, word) for word in call.checks]
    start_ticks = call.clock.start(new) if call.clock else ""
    if call.extent is not None and parallel:
        extent, work = function.extent(call.extent), function.extent(call.work)
        arguments = f"ptr @{call.name}, i64 {extent}, i64 {call.unit}, i64 {work}"
        status = new(f"call i64 @jk_share(ptr %frame, {arguments})")
    else:
        status = new(f"call i64 @{call.name}(ptr %frame, i64 0, i64 {function.extent(call.trip_count)})")
    if call.clock:
        block.lines.append(call.clock.stop(start_ticks))
    if call.bails_out:
        _return_unless_zero(function, status)
    failed = new(f"or i64 {failed}, {status}")
    for flag in flags:
        is_ok, label = new(f"icmp eq i8 {new(f'load i8, ptr {flag}')}, 0"), function.label()
        block.lines += [f"  br i1 {is_ok}, label %{label}, label %refused", f"{label}:"]
    return failed


def _return_unless_zero(function: FunctionBuilder, status: str) -> None:
    """Return a status from the entry if it is not zero."""
    is_ok, onwards, bail = function.new(function.block, f"icmp eq i64 {status}, 0"), function.label(), function.label()
    function.block.lines += [f"  br i1 {is_ok}, label %{onwards}, label %{bail}, !prof !7", f"{bail}:"]
    function.block.lines += [f"  ret i64 {status}", f"{onwards}:"]


def _require_built(function: FunctionBuilder, required: Sequence[RequiredCode]) -> None:
    """Return from the entry if code for some sizes is not built. A check ignores its other arguments.

    All checks are made, so that all that is missing can be built at once.
    """
    block, status = function.block, "0"
    for check, sizes in required:
        kinds, arguments = entry_points.types_of(check.arguments), [*map(function.extent, sizes)]
        passed = [
            "ptr null" if kind.startswith("ptr") else f"i64 {arguments.pop(0) if arguments else 0}" for kind in kinds
        ]
        function.library.declare(check.symbol, "i64", ["ptr" if kind.startswith("ptr") else kind for kind in kinds])
        found = function.new(block, f"call i64 @{check.symbol}({', '.join(passed)})")
        status = function.new(block, f"or i64 {status}, {found}")
    if required:
        _return_unless_zero(function, status)


def _name_of(text: str) -> str:
    """The name of the nest that a text defines first."""
    found = _HEAD.search(text.replace("define internal ", "define ", 1))
    return found[2] if found else ""


def mark_inlined(text: str) -> str:
    """Mark a function's text for inlining."""
    return text.replace(" noinline ", " alwaysinline ", 1)


def mark_unrolled(text: str) -> str:
    """Mark all loops of a text, which have few iterations, for full unrolling."""
    return text.replace("!llvm.loop !0", "!llvm.loop !10")


def _is_inlined(text: str) -> bool:
    return " alwaysinline " in text[: text.index("\n")]


def unit_text(library: Library, texts: Sequence[str]) -> str:
    """Return the LLVM IR of functions, with the library functions that they call."""
    return "\n".join(
        [
            *texts,
            _definitions(library, texts),
            "!0 = distinct !{!0, !1, !2}",
            '!1 = !{!"llvm.loop.unroll.disable"}',
            '!2 = !{!"llvm.loop.vectorize.enable", i1 false}',
            "!3 = !{i32 1}",
            "!10 = distinct !{!10, !2}",
            "!5 = distinct !{!5, !6}",
            '!6 = !{!"llvm.loop.parallel_accesses", !9}',
            "!9 = distinct !{}",
            '!4 = !{!"branch_weights", i32 1, i32 1000}',
            '!8 = !{!"branch_weights", i32 1, i32 1000}',
            '!7 = !{!"branch_weights", i32 1000, i32 1}',
            "",
        ]
    )


def _check_flag(function: FunctionBuilder, word: int) -> str:
    """Store the address of a bool, which a loop nest sets to bail out, to the frame; return it."""
    flag = function.variable("i64")
    function.block.lines.append(f"  store ptr {flag}, ptr {function.slot(function.block, word)}")
    return flag


def _definitions(library: Library, texts: Sequence[str]) -> str:
    """The library functions that loop nests call: a long function with many calls is not inlined."""
    whole = "\n".join(texts)
    lines = [*library.declared.values()]
    if "@jk_took(" in whole:
        lines.append(cycle_counter.text(cycle_counter.STOP))
    for symbol, definition in library.definitions.items():
        text = definition.text
        if len(text) > MAX_INLINE_CHARS and whole.count(f" {symbol}(") > MAX_INLINE_CALLS:
            text = text.replace(" alwaysinline ", " noinline ", 1)
        lines.append(text)
    return "\n".join([*lines, ""])


def externals(library: Library, *, parallel: bool) -> tuple[External, ...]:
    """The external functions that a segment links to."""
    return (
        *outlined.externals(library),
        *([team_size.sharing_function(), team_size.run_function()] if parallel else []),
    )
