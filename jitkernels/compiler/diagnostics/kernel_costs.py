"""What each kernel of compiled code costs: time of its fastest call, operations, bytes of the arena and of constants.

Times are those that code with ``profile=True`` counts; without it costs are known, but no times.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitkernels.compiler.diagnostics.kernel_summary import Group, group_of, groups_of
from jitkernels.compiler.diagnostics.profile_report import size_for, work_of
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.regions import LoopParts, is_tiled_loop
from jitkernels.compiler.lowering.compiled_program import CompiledProgram
from jitkernels.compiler.lowering.profile_counters import SizeCounters
from jitkernels.compiler.schedule.region_stages import NestGroup
from jitkernels.compiler.transforms.trip_count import trip_count_of


@dataclass(frozen=True)
class KernelCost:
    """The costs of one kernel for the sizes of most calls.

    `seconds`: of all its runs in the call in which they took least, None where calls were not timed. `operations`,
    `bytes_moved`: of one run, 0 where sizes differ between iterations. `arena_bytes`: its results in the arena;
    `constant_bytes`: the constants that it reads.
    """

    group: Group
    seconds: float | None
    runs: int
    operations: int
    bytes_moved: int
    arena_bytes: int
    constant_bytes: int


def costs_of(specialization: Specialization, *, in_tiles: bool = False) -> list[KernelCost]:
    """The costs of the kernels of compiled code, in the order in which they run.

    `in_tiles`: those of the kernels inside of a loop over tiles in place of the costs of the loop.
    """
    program = specialization.program
    if specialization.graph is None or program is None:
        return []
    graph = getattr(program, "graph", specialization.graph)
    taken = _most_called(program)
    values = specialization.scope.values if taken is None else taken.values
    constants = {*graph.inputs[len(graph.inputs) - len(specialization.constants) :]}
    between = _nodes_in_arena(program)
    costs = []
    for group in groups_of(program, graph):
        flow = next((step for step in group.steps if isinstance(step, Flow) and is_tiled_loop(step.node)), None)
        if flow is None or not in_tiles:
            costs.append(_cost(program, group, taken, 1, values, between, constants))
            continue
        inner = [nests for body in flow.bodies.values() for nests in body.groups]
        own = constants | _captured(flow, inner, constants)
        local = {*between, *(node for nests in inner for node in nests.words)}
        tiles = symbolic_dims.evaluated(trip_count_of(flow.node), values)
        costs += [_cost(program, group_of(step), taken, tiles, values, local, own) for step in group.inner]
    return costs


def _cost(
    program: Any,
    group: Group,
    taken: SizeCounters | None,
    runs: int,
    values: Mapping[str, int],
    between: Collection[Node],
    constants: Collection[Node],
) -> KernelCost:
    """The costs of one kernel. `runs`: how often it runs in a call that was not timed."""
    bytes_moved, operations = work_of(group, values)
    return KernelCost(
        group,
        None if taken is None else sum(taken.least_seconds(number) for number in _numbers(program, group)),
        runs if taken is None else _runs(taken, _numbers(program, group)),
        operations,
        bytes_moved,
        sum(size_for(node, values) for node in group.writes if node in between),
        sum(size_for(node, values) for node in dict.fromkeys(group.reads) if node in constants),
    )


def _captured(flow: Flow, inner: Sequence[NestGroup], constants: Collection[Node]) -> set[Node]:
    """The inputs of the kernels of a loop that are constants of the program."""
    parts = LoopParts(flow.node)
    pairs = zip(parts.captured_parameters, parts.captured, strict=True)
    known = {parameter for parameter, operand in pairs if operand in constants}
    return {
        node
        for nests in inner
        for node, captured in zip(nests.program.graph.inputs, nests.captured, strict=True)
        if captured in known
    }


def constant_bytes(specialization: Specialization) -> int:
    """The bytes of all constants that compiled code reads."""
    return sum(getattr(array, "nbytes", 0) for array in specialization.constants)


def _most_called(program: Any) -> SizeCounters | None:
    profile = getattr(program, "profile", None)
    called = [taken for taken in (profile.by_sizes.values() if profile is not None else ()) if taken.calls]
    return max(called, key=lambda taken: taken.calls, default=None)


def _numbers(program: Any, group: Group) -> Sequence[int]:
    """The numbers of the timed steps of a group."""
    return [i for i, known in enumerate(program.profile.steps) if any(known is step for step in group.steps)]


def _runs(taken: SizeCounters, numbers: Sequence[int]) -> int:
    """How often steps ran in each call."""
    return max((int(taken.counters[number, 1]) // taken.calls for number in numbers), default=0)


def _nodes_in_arena(program: Any) -> Mapping[Node, None]:
    if not isinstance(program, CompiledProgram):
        return {}
    words = {buffer.word for buffer in program.arena.buffers}
    return {node: None for node in program.allocated if program.words.get(node) in words}
