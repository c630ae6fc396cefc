"""A graph as the body of a kernel: ``i64 @body(arrays, integers, numbers, i64 begin, i64 end)`` in LLVM IR.

It is what a loop nest that is written by hand becomes, so that threads, ranges and callers are the same for both.
"""

from collections.abc import Sequence

from jitkernels.errors import BuildError
from jitkernels.graph.compilation import compiled
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit import programs
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.extents import Extent, Number, Scope
from jitkernels.graph.ir import Graph
from jitkernels.graph.program import Program, Segment

CONFIG = JitConfig(opt_level=3, backend="native")


def body_of(graph: Graph, scope: Scope, arrays: int, along: str, variant: Variant) -> str:
    """The body; its first `arrays` inputs are the kernel's arrays, its other ones numbers of type double.

    Parts of it are parts of the extent `along`. Raises BuildError for what is more than one nest.
    """
    units: list[programs.Unit] = []
    program = compiled(graph, scope, CONFIG, lambda *_: variant, units)
    _require_one(program, units)
    (unit,) = units
    (call,) = unit.calls
    symbols = [*program.symbols]
    words = [program.words[id(node)] for node in graph.inputs]
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
    # Nothing is left of the frame where the nest is part of the body.
    texts = [text.replace(" noinline ", " alwaysinline ", 1) for text in unit.texts]
    run = f"  %status = call i64 @{call.name}(ptr %frame, i64 {first}, i64 {last})"
    return programs.unit_text(unit.library, [*texts, "\n".join([*lines, run, "  ret i64 %status", "}"])])


def _require_one(program: Program, units: Sequence[programs.Unit]) -> None:
    """Raise BuildError for what is more than one loop over the arrays as they are."""
    others = [step.operation for step in program.steps if not isinstance(step, Segment)]
    if others or not units:
        raise BuildError(f"expected one loop nest, got {', '.join(others) or 'nothing'} besides")
    if len(units[0].calls) != 1 or program.made:
        raise BuildError(f"expected one loop nest, got {len(units[0].calls)} with arrays between them")


def _steps(extent: Number, along: str, symbols: Sequence[str]) -> list[int | str]:
    """The numbers and symbols whose product is how many steps of the nest there are for each of `along`."""
    if isinstance(extent, Extent) and len(extent.terms) == 1:
        ((monomial, count),) = extent.terms.items()
        names = [atom.text for atom in monomial]
        if along in names and {*names} <= {*symbols}:
            names.remove(along)
            return [*([count] if count != 1 else []), *names]
    raise BuildError(f"the loop nest runs over {extent}: expected so many steps for each of {along}")
