"""`explain` and `stats`: what a function was compiled to, which calls are NumPy's and why, how many bytes move."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.compiler.capture.pytree.flatten import Leaf
from jitkernels.compiler.diagnostics.explain_breaks import WHOLE, DividedExplanation, GraphBreak, PartExplanation
from jitkernels.compiler.diagnostics.kernel_summary import Group, bytes_moved_by_numpy, groups_of, moved
from jitkernels.compiler.diagnostics.profile_report import KernelTime, by_group, times_of
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.lowering.compiled_program import CompiledProgram
from jitkernels.compiler.memory.arena import Arena
from jitkernels.compiler.schedule.numpy_step import NumpyCall


@dataclass(frozen=True)
class JitStats:
    """Totals over all code of a function.

    `kernels`: loop nests and products; `launches`: how many of them calls have started, and `cache_hits`: calls that
    found compiled code. Neither counts calls that bypass Python, unless the function has ``profile=True``.
    `arena_bytes`: memory of the arrays between kernels in the code with the largest arena, for the sizes it was
    compiled with; `arena_efficiency`: the share of that which is live at once, from 0 to 1. `arena_high_water`: its
    maximum over code and calls so far. `python_entries`: calls that the compiled entry did not take, so that Python
    looked up their code, which takes 30 us and more; `python_reasons`: why, and how many. `times`: the time of each
    kernel by the sizes of calls, with ``profile=True``.
    """

    compiles: int
    kernels: int
    launches: int
    bytes_moved: int
    compile_seconds: float
    cache_hits: int
    arena_bytes: int = 0
    arena_efficiency: float = 1.0
    arena_high_water: int = 0
    times: tuple[KernelTime, ...] = ()
    python_entries: int = 0
    python_reasons: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        figures = [
            f"{name}: {round(value, 4) if isinstance(value, float) else value}"
            for name, value in vars(self).items()
            if name not in ("times", "python_reasons")
        ]
        indented = [f"    {item.kernel}: {item.figures}" if item.inside else f"  {item}" for item in self.times]
        reasons = [f"  entered through Python: {count} ({reason})" for reason, count in self.python_reasons]
        return "\n".join([", ".join(figures), *indented, *reasons])


def numbers(specializations: Sequence[Specialization], hits: int, entries: Sequence[tuple[str, int]] = ()) -> JitStats:
    """The totals over some code, which `hits` calls found; `entries`: calls through Python by their reasons."""
    compiled = [
        (specialization, groups_of(specialization.program, specialization.graph))
        for specialization in specializations
        if specialization.graph is not None
    ]
    arenas = [
        specialization.program.arena
        for specialization, _ in compiled
        if isinstance(specialization.program, CompiledProgram)
    ]
    largest = max(arenas, key=lambda arena: arena.traced_bytes, default=Arena())
    kernels = [sum(group.kind != "NumPy" for group in groups) for _, groups in compiled]
    return JitStats(
        compiles=len(specializations),
        kernels=sum(kernels),
        launches=sum(
            specialization.calls * count for (specialization, _), count in zip(compiled, kernels, strict=True)
        ),
        bytes_moved=sum(moved(groups) * specialization.calls for specialization, groups in compiled),
        compile_seconds=sum(specialization.seconds for specialization in specializations),
        cache_hits=hits,
        arena_bytes=largest.traced_bytes,
        arena_efficiency=largest.bound / largest.traced_bytes if largest.traced_bytes else 1.0,
        arena_high_water=max(
            [
                largest.traced_bytes,
                *(
                    specialization.max_workspace_bytes
                    for spec in specializations
                    for specialization in spec.links.values()
                    if specialization
                ),
            ]
        ),
        times=times_of(specialization.program for specialization, _ in compiled),
        python_entries=sum(count for _, count in entries),
        python_reasons=tuple(entries),
    )


@dataclass(frozen=True)
class FunctionExplanation:
    """The result of `explain`. `reason`: why NumPy runs all of it; "" where compiled code runs.

    `entry_reason`: why each such call enters through Python; "" where the compiled entry takes it. `specializations`:
    without arguments, the explanations of all that was compiled so far, whose kernels and bytes are those of this one
    together; None where a call was given. `divided`: where the function breaks, and its compiled parts.
    """

    title: str
    groups: tuple[Group, ...]
    names: dict[int, str]
    notes: tuple[str, ...]
    reason: str
    bytes_before: int
    bytes_after: int
    bytes_between: int = 0
    entry_reason: str = ""
    specializations: "tuple[FunctionExplanation, ...] | None" = None
    divided: DividedExplanation = WHOLE

    @property
    def breaks(self) -> tuple[GraphBreak, ...]:
        """The statements that Python runs between compiled parts, each with its line and reason."""
        return self.divided.breaks

    @property
    def parts(self) -> tuple[PartExplanation, ...]:
        """The compiled parts between breaks."""
        return self.divided.parts

    @property
    def kernels(self) -> int:
        own = sum(group.kind != "NumPy" for group in self.groups)
        return own + sum(part.explanation.kernels for part in self.parts)

    def __str__(self) -> str:
        if self.breaks and self.specializations is None:
            head = f"{self.title}: breaks at {_counted(len(self.breaks), 'line')}; {self.divided.cost()}"
            return "\n".join([head, *(f"  {line}" for line in self.divided.lines)])
        if self.specializations is not None:
            lines = [line for part in self.specializations for line in str(part).splitlines()]
            count = len(self.specializations) or "no"
            head = f"{self.title}: {count} specialization{'' if count == 1 else 's'} compiled so far"
            return "\n".join([head, *(f"  {line}" for line in (*lines, *self.divided.lines, *self.notes))])
        if self.reason:
            return f"{self.title}: falls back to NumPy: {self.reason}"
        inner_steps = (step for group in self.groups for step in group.inner)
        calls = len(self.groups) - self.kernels + sum(isinstance(step, NumpyCall) for step in inner_steps)
        lines = [f"{self.title}: {_counted(self.kernels, 'kernel')}, {_counted(calls, 'call')} of NumPy"]
        for number, group in enumerate(self.groups, 1):
            reads = ", ".join(self._name(node) for node in group.reads) or "nothing"
            writes = ", ".join(self._name(node) for node in group.writes)
            variant = f"; {group.variant}" if group.variant else ""
            lines.append(f"  {number} {group.kind}: {group.text or 'copy'}; reads {reads}; writes {writes}{variant}")
            lines += [f"    {f'  {value.kernel}: ' if value.inside else ''}{value.figures}" for value in group.times]
        lines.append(f"  memory moved: {self.bytes_after:,} bytes, by NumPy {self.bytes_before:,}")
        if self.bytes_between:
            lines.append(f"  memory between kernels: {self.bytes_between:,} bytes")
        if self.entry_reason:
            lines.append(f"  calls enter through Python: {self.entry_reason}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def _name(self, node: Node) -> str:
        return f"{self.names.get(id(node), 'an array')}: {described(node)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def described(node: Node) -> str:
    """Dtype and shape of a node as text."""
    return f"{node.dtype}[{', '.join(map(str, node.shape))}]"


def explanation(
    name: str, specialization: Specialization, arguments: Sequence[str], entry_reason: str = ""
) -> FunctionExplanation:
    """The explanation of one specialization of a function; `arguments`: the names of its arguments.

    `entry_reason`: why calls enter through Python.
    """
    symbols = ", ".join(f"{symbol}={value}" for symbol, value in specialization.scope.values.items())
    title = f"{name} for {symbols}" if symbols else name
    if specialization.graph is None:
        return FunctionExplanation(title, (), {}, specialization.notes, specialization.reason, 0, 0)
    graph = getattr(specialization.program, "graph", specialization.graph)
    groups = tuple(by_group(specialization.program, groups_of(specialization.program, graph)))
    names = names_of(graph, groups, arguments)
    between = specialization.program.arena.traced_bytes if isinstance(specialization.program, CompiledProgram) else 0
    return FunctionExplanation(
        title,
        groups,
        names,
        specialization.notes,
        "",
        bytes_moved_by_numpy(specialization.graph),
        moved(groups),
        between,
        entry_reason,
    )


def explanation_of_divided(
    name: str, specialization: Specialization | None, reason: str, divided: DividedExplanation
) -> FunctionExplanation:
    """The explanation of a call without code of its own, which breaks or, without parts, falls back to NumPy."""
    notes = () if specialization is None else specialization.notes
    return FunctionExplanation(name, (), {}, notes, "" if divided.parts else reason, 0, 0, divided=divided)


def explanation_of_all(function: Any) -> FunctionExplanation:
    """The explanation of all that a compiled function was compiled to so far, and how to ask about a call."""
    name, names, divided = function.__name__, function._signature.names, function.divided()
    parts = tuple(
        explanation(name, specialization, argument_names(structure, names), specialization.entry_reason)
        for (structure, _), candidates in list(function._specializations.items())
        for specialization in candidates
        if specialization.graph is not None or not divided.parts
    )
    fell_back = {} if divided.parts else function._fallbacks
    fallbacks = [f"{_counted(count, 'call')} fell back to NumPy: {why}" for why, count in fell_back.items()]
    hint = f"explain({', '.join(names)}) with the arguments of a call explains that call, and compiles it"
    return FunctionExplanation(
        name,
        tuple(group for part in parts for group in part.groups),
        {key: value for part in parts for key, value in part.names.items()},
        (*fallbacks, hint),
        "",
        sum(part.bytes_before for part in parts),
        sum(part.bytes_after for part in parts),
        max((part.bytes_between for part in parts), default=0),
        specializations=parts,
        divided=divided,
    )


def names_of(graph: Any, groups: Sequence[Group], arguments: Sequence[str]) -> dict[int, str]:
    """Display names of the arrays in memory: arguments by their Python names, results, and intermediates."""
    names = {id(node): name for node, name in zip(graph.inputs, arguments, strict=False)}
    for i, node in enumerate(graph.inputs[len(arguments) :]):
        names[id(node)] = f"constant {i}"
    for i, node in enumerate(graph.outputs):
        names.setdefault(id(node), "result" if len(graph.outputs) == 1 else f"result {i}")
    count = 0
    for group in groups:
        parts = [node for node in group.reads if node.operation == "concatenate"]  # maybe written in parts
        for node in (*parts, *group.writes):
            if id(node) not in names:
                count += 1
                names[id(node)] = f"{node.operation} {count}"
    return names


def argument_names(structure: Any, names: Sequence[str]) -> list[str]:
    """The Python expressions of leaves, in order: `weights`, ``layers[0]``, ``model.bias``."""
    function, (_, specs), (_, keywords, named) = structure
    leaf_names = list(_named("", function))
    parameters = [*names, *(f"argument {i}" for i in range(len(names), len(specs)))]
    for name, spec in zip(parameters, specs, strict=False):
        leaf_names += _named(name, spec)
    for name, spec in zip(keywords, named, strict=True):
        leaf_names += _named(name, spec)
    return leaf_names


def _named(name: str, spec: Any) -> Iterator[str]:
    if type(spec) is Leaf:
        yield name
        return
    kind = spec[0]
    if kind in (tuple, list):
        for i, element in enumerate(spec[1]):
            yield from _named(f"{name}[{i}]", element)
    elif kind is dict:
        for key, element in zip(spec[1], spec[2], strict=True):
            yield from _named(f"{name}[{key!r}]", element)
    elif kind == "structured":
        yield from (f"{name}[{field!r}]" for field in spec[2].names)
    elif kind == "generator":
        yield from (f"{name}.bit_generator.state" for _ in spec[3])
    elif kind == "drawn":
        yield from _named(name, spec[2])
    elif kind == "named":
        for field, element in zip(spec[1]._fields, spec[2], strict=True):
            yield from _named(f"{name}.{field}", element)
    elif kind == "object":
        for field, element in zip(spec[2], spec[3], strict=True):
            yield from _named(f"{name}.{field}", element)
        for field, (what, element) in spec[4]:
            if what == "function":
                yield from _named(f"{name}.{field}", element)
    elif kind == "function":
        yield from _of_function(name, spec)
    elif kind in ("slice", "method", "partial"):
        for i, element in enumerate(spec[1:]):
            yield from _named(f"{name}[{i}]", element)


def _of_function(name: str, spec: Any) -> Iterator[str]:
    code, _, cells, defaults, keywords, bound, read = spec[1:]
    prefix = f"{name}." if name else ""
    for variable, element in zip(code.co_freevars, cells, strict=True):
        yield from _named(f"{prefix}{variable}", element)
    for i, element in enumerate(defaults):
        yield from _named(f"{prefix}default {i}", element)
    for variable, element in (*keywords, *bound):
        yield from _named(f"{prefix}{variable}", element)
    for chain, element in read:
        yield from _named(f"{prefix}{'.'.join(chain)}", element)
