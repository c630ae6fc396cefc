"""A graph as a kernel body: ``i64 @body(arrays, integers, numbers, i64 begin, i64 end)`` in LLVM IR.

It has the signature of hand-written kernels, so that both share threads, ranges and callers.
"""

from collections.abc import Sequence
from dataclasses import replace

from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, Scope
from jitkernels.compiler.lowering.compiled_program import CompiledProgram, Segment
from jitkernels.compiler.lowering.lower_graph import compile_graph
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.errors import BuildError

CONFIG = JitConfig(opt_level=3, backend="native")


def body_of(graph: Graph, scope: Scope, arrays: int, along: str, chosen: NestSchedule, backend: str = "native") -> str:
    """The body; the first `arrays` inputs of the graph are the kernel's arrays, the other ones scalars of type double.

    It splits the range along the extent `along`. Raises BuildError for a graph that is more than one loop nest.
    """
    emitted: list[module_text.SegmentParts] = []
    program = compile_graph(graph, scope, replace(CONFIG, backend=backend), lambda _: chosen, emitted)
    _require_one(program, emitted)
    (parts,) = emitted
    (call,) = parts.calls
    symbols = [*program.symbols]
    words = [program.words[node] for node in graph.inputs]
    words[arrays:arrays] = program.symbols.values()
    kinds = ["ptr"] * arrays + ["i64"] * len(symbols)
    kinds += ["ptr"] * (len(words) - len(kinds))
    taken = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    lines = [
        f"define i64 @body({taken}, i64 %begin, i64 %end) alwaysinline {{",
        f"  %frame = alloca [{len(words)} x i64]",
    ]
    for i, (word, kind) in enumerate(zip(words, kinds, strict=True)):
        lines += [f"  %w{i} = getelementptr i64, ptr %frame, i64 {word}", f"  store {kind} %a{i}, ptr %w{i}"]
    first, last = "%begin", "%end"
    for i, step in enumerate(_steps(call.extent, along, symbols)):
        factor = step if isinstance(step, int) else f"%a{arrays + symbols.index(step)}"
        lines += [f"  %b{i} = mul i64 {first}, {factor}", f"  %e{i} = mul i64 {last}, {factor}"]
        first, last = f"%b{i}", f"%e{i}"
    # Inlining the nest lets LLVM promote the frame to registers.
    texts = [module_text.mark_inlined(text) for text in (*parts.texts, *parts.flows)]
    run = f"  %status = call i64 @{call.name}(ptr %frame, i64 {first}, i64 {last})"
    return module_text.unit_text(parts.library, [*texts, "\n".join([*lines, run, "  ret i64 %status", "}"])])


def _require_one(program: CompiledProgram, emitted: Sequence[module_text.SegmentParts]) -> None:
    """Raise BuildError unless the program is one loop nest over its arguments."""
    others = [step.operation for step in program.steps if not isinstance(step, Segment)]
    if others or not emitted:
        raise BuildError(f"expected one loop nest, got {', '.join(others) or 'nothing'} besides")
    if len(emitted[0].calls) != 1 or program.allocated:
        raise BuildError(f"expected one loop nest, got {len(emitted[0].calls)} with arrays between them")


def _steps(extent: Number, along: str, symbols: Sequence[str]) -> list[int | str]:
    """The constants and symbols whose product is the number of iterations of the nest for each index of `along`."""
    if isinstance(extent, Extent) and len(extent.terms) == 1:
        ((monomial, count),) = extent.terms.items()
        names = [atom.text for atom in monomial]
        if along in names and {*names} <= {*symbols}:
            names.remove(along)
            return [*([count] if count != 1 else []), *names]
    raise BuildError(f"the loop nest runs over {extent}: expected so many steps for each of {along}")
