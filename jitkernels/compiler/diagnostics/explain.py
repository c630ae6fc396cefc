"""What became of a function: which operations are one kernel, what NumPy does and why, how much memory moves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.frontends.arguments import Leaf
from jitkernels.frontends.groups import Group, groups_of, moved, moved_by_numpy
from jitkernels.frontends.specialisation import Specialisation
from jitkernels.frontends.times import KernelTime, by_group, times_of
from jitkernels.graph.arena import Arena
from jitkernels.graph.ir import Node
from jitkernels.graph.numpy_calls import NumpyCall
from jitkernels.graph.program import Program


@dataclass(frozen=True)
class JitStats:
    """Sums over all code of a function.

    `kernels`: loop nests and products; `launches`: how many of them calls have started, and `cache_hits`: calls that
    found their code. Calls that go without Python count neither, unless the function has ``profile=True``.
    `arena_bytes`: what the arrays between kernels take, in the code where that is most, for the sizes that it was made
    with; `arena_efficiency`: how much of that is needed at once, from 0 to 1. `arena_high_water`: the most that it was
    in code or call so far. `times`: what each kernel took, with ``profile=True``, by the sizes of calls.
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

    def __str__(self) -> str:
        figures = [
            f"{name}: {round(value, 4) if isinstance(value, float) else value}"
            for name, value in vars(self).items()
            if name != "times"
        ]
        indented = [f"    {one.kernel}: {one.figures}" if one.inside else f"  {one}" for one in self.times]
        return "\n".join([", ".join(figures), *indented])


def numbers(made: Sequence[Specialisation], hits: int) -> JitStats:
    """The sums over some code, which so many calls found."""
    compiled = [(one, groups_of(one.program, one.graph)) for one in made if one.graph is not None]
    arenas = [one.program.arena for one, _ in compiled if isinstance(one.program, Program)]
    largest = max(arenas, key=lambda arena: arena.now, default=Arena())
    kernels = [sum(group.kind != "NumPy" for group in groups) for _, groups in compiled]
    return JitStats(
        compiles=len(made),
        kernels=sum(kernels),
        launches=sum(one.calls * count for (one, _), count in zip(compiled, kernels, strict=True)),
        bytes_moved=sum(moved(groups) * one.calls for one, groups in compiled),
        compile_seconds=sum(one.seconds for one in made),
        cache_hits=hits,
        arena_bytes=largest.now,
        arena_efficiency=largest.bound / largest.now if largest.now else 1.0,
        arena_high_water=max(
            [largest.now, *(one.most_lent for spec in made for one in spec.direct.values() if one)]
        ),
        times=times_of(one.program for one, _ in compiled),
    )


@dataclass(frozen=True)
class FunctionExplanation:
    """What `explain` of a compiled function tells. `reason`: why NumPy runs all of it; nothing where code does."""

    title: str
    groups: tuple[Group, ...]
    names: dict[int, str]
    notes: tuple[str, ...]
    reason: str
    bytes_before: int
    bytes_after: int
    bytes_between: int = 0

    @property
    def kernels(self) -> int:
        return sum(group.kind != "NumPy" for group in self.groups)

    def __str__(self) -> str:
        if self.reason:
            return f"{self.title}: left to NumPy: {self.reason}"
        within = (part for group in self.groups for part in group.inner)
        calls = len(self.groups) - self.kernels + sum(isinstance(part, NumpyCall) for part in within)
        lines = [f"{self.title}: {_counted(self.kernels, 'kernel')}, {_counted(calls, 'call')} of NumPy"]
        for number, group in enumerate(self.groups, 1):
            reads = ", ".join(self._name(node) for node in group.reads) or "nothing"
            writes = ", ".join(self._name(node) for node in group.writes)
            variant = f"; {group.variant}" if group.variant else ""
            lines.append(
                f"  {number} {group.kind}: {group.text or 'copy'}; reads {reads}; writes {writes}{variant}"
            )
            lines += [f"    {f'  {one.kernel}: ' if one.inside else ''}{one.figures}" for one in group.times]
        lines.append(f"  memory moved: {self.bytes_after:,} bytes, by NumPy {self.bytes_before:,}")
        if self.bytes_between:
            lines.append(f"  memory between kernels: {self.bytes_between:,} bytes")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def _name(self, node: Node) -> str:
        return f"{self.names.get(id(node), 'an array')}: {described(node)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def described(node: Node) -> str:
    """Dtype and shape."""
    return f"{node.dtype}[{', '.join(map(str, node.shape))}]"


def explanation(name: str, made: Specialisation, arguments: Sequence[str]) -> FunctionExplanation:
    """What became of a function for one kind of arguments, which have names."""
    symbols = ", ".join(f"{symbol}={value}" for symbol, value in made.scope.values.items())
    title = f"{name} for {symbols}" if symbols else name
    if made.graph is None:
        return FunctionExplanation(title, (), {}, made.notes, made.reason, 0, 0)
    graph = getattr(made.program, "graph", made.graph)
    groups = tuple(by_group(made.program, groups_of(made.program, graph)))
    names = names_of(graph, groups, arguments)
    between = made.program.arena.now if isinstance(made.program, Program) else 0
    return FunctionExplanation(
        title, groups, names, made.notes, "", moved_by_numpy(made.graph), moved(groups), between
    )


def names_of(graph: Any, groups: Sequence[Group], arguments: Sequence[str]) -> dict[int, str]:
    """Readable names of the arrays in memory: arguments as the function calls them, results, and what lies between."""
    names = {id(node): name for node, name in zip(graph.inputs, arguments, strict=False)}
    for i, node in enumerate(graph.inputs[len(arguments) :]):
        names[id(node)] = f"constant {i}"
    for i, node in enumerate(graph.outputs):
        names.setdefault(id(node), "result" if len(graph.outputs) == 1 else f"result {i}")
    count = 0
    for group in groups:
        for node in group.writes:
            if id(node) not in names:
                count += 1
                names[id(node)] = f"{node.operation} {count}"
    return names


def argument_names(structure: Any, names: Sequence[str]) -> list[str]:
    """The names of leaves, in order: `weights`, ``layers[0]``, ``model.bias``."""
    function, (_, parts), (_, keywords, named) = structure
    found = list(_named("", function))
    more = [*names, *(f"argument {i}" for i in range(len(names), len(parts)))]
    for name, part in zip(more, parts, strict=False):
        found += _named(name, part)
    for name, part in zip(keywords, named, strict=True):
        found += _named(name, part)
    return found


def _named(name: str, part: Any) -> Iterator[str]:
    if type(part) is Leaf:
        yield name
        return
    kind = part[0]
    if kind in (tuple, list):
        for i, one in enumerate(part[1]):
            yield from _named(f"{name}[{i}]", one)
    elif kind is dict:
        for key, one in zip(part[1], part[2], strict=True):
            yield from _named(f"{name}[{key!r}]", one)
    elif kind == "named":
        for field, one in zip(part[1]._fields, part[2], strict=True):
            yield from _named(f"{name}.{field}", one)
    elif kind == "object":
        for field, one in zip(part[2], part[3], strict=True):
            yield from _named(f"{name}.{field}", one)
        for field, (what, one) in part[4]:
            if what == "function":
                yield from _named(f"{name}.{field}", one)
    elif kind == "function":
        yield from _of_function(name, part)
    elif kind in ("slice", "method", "partial"):
        for i, one in enumerate(part[1:]):
            yield from _named(f"{name}[{i}]", one)


def _of_function(name: str, part: Any) -> Iterator[str]:
    code, _, cells, defaults, keywords, bound, read = part[1:]
    prefix = f"{name}." if name else ""
    for variable, one in zip(code.co_freevars, cells, strict=True):
        yield from _named(f"{prefix}{variable}", one)
    for i, one in enumerate(defaults):
        yield from _named(f"{prefix}default {i}", one)
    for variable, one in (*keywords, *bound):
        yield from _named(f"{prefix}{variable}", one)
    for chain, one in read:
        yield from _named(f"{prefix}{'.'.join(chain)}", one)
