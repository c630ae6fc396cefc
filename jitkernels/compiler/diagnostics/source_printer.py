"""The code of a compiled function as text: Python loops as numba compiles them, or LLVM IR."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from jitkernels.codegen.numba_functions import functions_in, python_of
from jitkernels.compiler.codegen.numba.flow_printer import unprintable
from jitkernels.compiler.diagnostics.explain import described
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.lowering import lower_graph
from jitkernels.compiler.lowering.compiled_program import CompiledProgram, Segment
from jitkernels.compiler.schedule import gemm_epilogue
from jitkernels.errors import AttrError, NotUsableError, shown

PRINTED = ("native", "numba")


def source(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], backend: str) -> str:
    """What the compiler decided for a call, or for all calls so far: loops in the language of a backend.

    Raises NotUsableError where NumPy runs all of it, AttrError for a backend that prints nothing.
    """
    if backend not in PRINTED:
        raise AttrError(f"backend: expected {' or '.join(PRINTED)}, got {shown(backend)}")
    compiled, names = compiled_for(function, args, kwargs)
    config = replace(function.config, backend=backend, profile=False)
    return "\n\n".join(_text(function.__name__, specialization, names, config) for specialization in compiled)


def compiled_for(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Specialization], Sequence[str]]:
    """What was compiled for a call, or for all calls so far, and the names of arguments.

    Raises NotUsableError where there is no code.
    """
    name, names = function.__name__, function._signature.names
    candidates: list[Specialization] = [
        specialization for listed in list(function._specializations.values()) for specialization in listed
    ]
    if args or kwargs or not candidates:
        specialization, call = function._compile_for(args, kwargs)
        if specialization is None:
            raise NotUsableError(f"{name}: there is no code: {function._fallback_reason(None)}")
        candidates, names = [specialization], function._names(call)
    compiled = [specialization for specialization in candidates if specialization.graph is not None]
    if not compiled:
        raise NotUsableError(f"{name}: there is no code: {candidates[0].reason}")
    return compiled, names


def _text(name: str, specialization: Specialization, names: Sequence[str], config: JitConfig) -> str:
    assert specialization.graph is not None, "compiled"
    program = lower_graph.compile_graph(specialization.graph, specialization.scope, config)
    mark = "#" if config.backend == "numba" else ";"
    head = [f"{mark} {line}" for line in _described(name, specialization, program, names)]
    segments = [step for step in program.steps if isinstance(step, Segment)]
    if config.backend == "native":
        return "\n".join([*head, *(segment.source.text for segment in segments)])
    functions = [function for segment in segments for function in functions_in(segment.source.text)]
    return "\n".join([*head, python_of(functions)])


def _described(name: str, specialization: Specialization, program: CompiledProgram, names: Sequence[str]) -> list[str]:
    """What the arrays of the code are, and the steps that are no printed loops."""
    symbols = ", ".join(f"{symbol}={value}" for symbol, value in specialization.scope.values.items())
    lines = [f"{name} for {symbols}" if symbols else name]
    known: dict[int, str] = {}
    for node, argument in zip(program.graph.inputs, names, strict=False):
        known[program.words[node]] = f"{argument}: {described(node)}"
    for i, node in enumerate(program.graph.outputs):
        if node in program.words:
            known.setdefault(program.words[node], f"result {i}: {described(node)}")
    lines += [f"a{word} is {what}" for word, what in sorted(known.items())]
    for number, step in enumerate(program.steps, 1):
        if isinstance(step, Node):
            lines.append(f"step {number}: NumPy computes {step.operation}")
            continue
        parts = [f"{gemm_epilogue.kind_of(nest)}{f' ({note})' if (note := _note(nest)) else ''}" for nest in step.nests]
        lines.append(f"step {number}: {', '.join(parts)}")
    return lines


def _note(nest: Any) -> str:
    """How a step is made, where that is not said by its name."""
    if isinstance(nest, Flow):
        reason = unprintable(nest)
        return f"LLVM IR: {reason}" if reason else ""
    return getattr(nest, "variant", "") or ""
