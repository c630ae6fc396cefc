"""A graph as the body of a kernel: ``i64 @body(arrays, integers, numbers, i64 begin, i64 end)`` in LLVM IR.

It is what a loop nest that is written by hand becomes, so that threads, ranges and callers are the same for both.
"""

from jitkernels.errors import BuildError
from jitkernels.graph import extents
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit import programs
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.extents import Atom, Extent, Scope
from jitkernels.graph.ir import Graph
from jitkernels.graph.program import Program, Segment, compiled


def body_of(graph: Graph, scope: Scope, arrays: int, along: str, vector_bytes: int, unroll: int = 0) -> str:
    """The body; its first `arrays` inputs are the kernel's arrays, its other ones numbers of type double.

    Parts of it are parts of the extent `along`. Raises BuildError for what is more than one nest.
    """
    program = compiled(graph, scope, CONFIG, Variant(vector_bytes, unroll) if unroll else None)
    unit = _unit(program)
    (call,) = unit.calls
    if extents.key_of_shape([call.extent]) != extents.key_of_shape([Extent({(Atom(along),): 1}, scope)]):
        raise BuildError(f"the loop nest runs over {call.extent}: expected {along}")
    words = [program.words[id(node)] for node in graph.inputs]
    words[arrays:arrays] = program.symbols.values()
    kinds = ["ptr"] * arrays + ["i64"] * len(program.symbols)
    kinds += ["ptr"] * (len(words) - len(kinds))
    taken = ", ".join(f"{kind} %a{i}" for i, kind in enumerate(kinds))
    lines = [f"define i64 @body({taken}, i64 %begin, i64 %end) {{", f"  %frame = alloca [{len(words)} x i64]"]
    for i, (word, kind) in enumerate(zip(words, kinds, strict=True)):
        lines += [f"  %w{i} = getelementptr i64, ptr %frame, i64 {word}", f"  store {kind} %a{i}, ptr %w{i}"]
    lines += [
        f"  %status = call i64 @{call.name}(ptr %frame, i64 %begin, i64 %end)",
        "  ret i64 %status",
        "}",
    ]
    return programs.unit_text(unit.library, [*unit.texts, "\n".join(lines)])


CONFIG = JitConfig(opt_level=3, backend="native")


def _unit(program: Program) -> programs.Unit:
    """What was emitted. Raises BuildError for what is more than one loop over the arrays as they are."""
    steps = program.steps
    if len(steps) != 1 or not isinstance(steps[0], Segment):
        names = [step.operation for step in steps if not isinstance(step, Segment)]
        raise BuildError(f"expected one loop nest, got {', '.join(names) or 'nothing'} besides")
    if len(steps[0].unit.calls) != 1 or program.made:
        raise BuildError(f"expected one loop nest, got {len(steps[0].unit.calls)} with arrays between them")
    return steps[0].unit
