"""From a graph to a program: what is computed where, which nests are one segment, and the code of each."""

from collections.abc import Sequence

from jitkernels.attrs.base import FLOATS
from jitkernels.errors import GraphError
from jitkernels.graph import (
    checks,
    construct,
    epilogues,
    flows,
    kernel_calls,
    lifetimes,
    neighbours,
    numpy_calls,
    products,
)
from jitkernels.graph.ahead import computed_ahead
from jitkernels.graph.aligned import with_aligned_matrices
from jitkernels.graph.arena import planned
from jitkernels.graph.bodies import bodies_of
from jitkernels.graph.config import JitConfig
from jitkernels.graph.emit import programs
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.extents import Number, Scope
from jitkernels.graph.flows import Flow
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.kernel_calls import KernelCall
from jitkernels.graph.limits import limit
from jitkernels.graph.nests import Nest
from jitkernels.graph.numpy_calls import NumpyCall
from jitkernels.graph.ordering import ordered
from jitkernels.graph.orders import order_of_store
from jitkernels.graph.passes import optimised
from jitkernels.graph.pieces import is_reshaped_input
from jitkernels.graph.products import Product
from jitkernels.graph.profile import Profile
from jitkernels.graph.program import Program
from jitkernels.graph.recomputing import Recomputing
from jitkernels.graph.replacing import Replacing
from jitkernels.graph.reuse import memory_of
from jitkernels.graph.schedule import Single, scheduled
from jitkernels.graph.segments import Choose, Maker
from jitkernels.graph.unrolling import unrolled


def _with_own_results(graph: Graph) -> Graph:
    """The graph with copies where it gives back, or writes, an input as it is, or the same node twice."""
    seen = {id(node) for node in (*graph.inputs, *(value for _, value in graph.writes))}
    outputs = []
    for node in graph.outputs:
        outputs.append(construct.copy(node) if id(node) in seen else node)
        seen.add(id(node))
    given = {id(node) for node in graph.inputs}
    writes = [
        (target, construct.copy(value) if id(value) in given else value) for target, value in graph.writes
    ]
    return graph.remade(outputs, writes, graph.checks)


def compiled(
    graph: Graph,
    scope: Scope,
    config: JitConfig,
    choose: Choose | None = None,
    units: list[programs.Unit] | None = None,
) -> Program:
    """The program of a graph. What is emitted for its segments is added to `units`."""
    program, steps, arrays = _planned(graph, scope, config)
    outputs = {id(node) for node in program.graph.outputs}
    between = {program.words[id(node)]: node for node in program.made if id(node) not in outputs}
    for i, name in enumerate(program.symbols):
        program.symbols[name] = len(program.words) + i
    if config.profile:
        program.profile = Profile(word=len(program.words) + len(program.symbols) + 1)
    group: list[lifetimes.Unit] = []
    for unit in [*_in_memory(steps, program, arrays, between), ()]:
        single = unit[0] if unit and isinstance(unit[0], Single) else None
        if unit and single is None:
            group.append(unit)
            continue
        if single is not None and id(single.node) in program.reshaped:
            continue
        if group:
            program.steps.append(Maker(arrays, program, scope, choose, units).segment(group))
            group = []
        if single is not None:
            program.steps.append(single.node)
            if program.profile is not None:
                program.profile.clock(single.node)
    return program


def _in_memory(
    steps: Sequence[epilogues.Step], program: Program, arrays: dict[int, Array], between: dict[int, Node]
) -> list[lifetimes.Unit]:
    """What is done one after another, when it is planned where the arrays between lie.

    Raises MemoryLimitError where that takes too much, whatever is computed again.
    """
    units = lifetimes.units_of(steps)
    uses = [lifetimes.use_of(unit, arrays) for unit in units]
    stays = {id(unit): lifetimes.stays(unit, program.graph) for unit in units}
    inside = lifetimes.inside_of(units)
    order = ordered(uses, [*stays.values()], lifetimes.lifetimes(range(len(units)), uses, between, inside))
    units, uses = [units[number] for number in order], [uses[number] for number in order]
    buffers = lifetimes.lifetimes(range(len(units)), uses, between, inside)
    program.arena, limit = planned(buffers), program.config.memory_limit
    if limit is None:
        return units
    if program.arena.now > limit:
        given = frozenset(program.words[id(node)] for node in program.graph.inputs)
        work = [lifetimes.work_of(unit) for unit in units]
        order, program.arena = Recomputing(
            uses, work, [stays[id(unit)] for unit in units], given, buffers
        ).within(limit)
        units = [units[number] for number in order]
    program.arena.limit = limit
    return units


def _planned(
    graph: Graph, scope: Scope, config: JitConfig, *, in_flow: bool = False
) -> tuple[Program, list[epilogues.Step], dict[int, Array]]:
    """What is computed where, and where its results are."""
    given = neighbours.decided(graph)
    if abs(config.opt_level) >= 2 and not in_flow:
        given = computed_ahead(given, scope)
    graph = _simplified(given, config)
    if checks.picks_in(graph) < checks.picks_in(given):
        # What comes to nothing is looked at all the same, as by NumPy.
        graph = _simplified(checks.checked(given), config)
    if abs(config.opt_level) >= 3 and not in_flow:
        graph = with_aligned_matrices(graph)
    graph = kernel_calls.lowered(flows.with_copies(checks.checked(_with_own_results(graph))))
    program = Program(graph, config)
    program.symbols = {name: 0 for name in scope.values if in_flow or name not in scope.moving}
    schedule = scheduled(
        graph,
        fuse=abs(config.opt_level) >= 3,
        fuse_reduce=config.fuse_reduce,
        largest=config.max_fusion_size,
        most_inputs=config.max_inputs,
    )
    results = [node for node in graph if flows.is_result(node) or flows.is_of_kernel(node)]
    steps: list[epilogues.Step] = [_native(step, results) for step in schedule.steps]
    if in_flow and any(isinstance(step, Single) and step.node.operation == "kernel" for step in steps):
        raise GraphError("a kernel that no code can call, in a loop or branch")
    if abs(config.opt_level) >= 3:
        steps = epilogues.brought_together(steps, schedule.shared)
    program.shared = schedule.shared
    return program, steps, _arrays(program, graph, steps, scope)


def _simplified(graph: Graph, config: JitConfig) -> Graph:
    """The graph as passes leave it."""
    graph = products.lowered(optimised(graph, config))
    if abs(config.opt_level) < 3:
        return graph
    # Passes take its copies for what changes nothing.
    return products.lowered(optimised(unrolled(graph), config))


def _arrays(
    program: Program, graph: Graph, steps: Sequence[epilogues.Step], scope: Scope
) -> dict[int, Array]:
    """Where each kept node is, which gets a word of the frame."""
    arrays: dict[int, Array] = {}
    for node in graph.inputs:
        strides = node.options.get("strides")
        arrays[id(node)] = _array(
            program, node, strides if strides is not None else construct.contiguous(node.shape)
        )
    plain = products.factors(graph) | {id(graph.outputs[i]) for i in graph.in_rows}
    given = {id(graph.outputs[i]): order for i, order in graph.orders}
    plain |= {id(memory_of(node, program.shared)) for node in graph if id(node) in plain}
    read_by_numpy = {id(one) for step in steps if isinstance(step, Single) for one in step.node.inputs}
    is_fused = abs(program.config.opt_level) >= 3
    in_memory_of = epilogues.taken_over(steps, graph, program.shared) if is_fused else {}
    replacing = Replacing(steps, graph, program.shared)
    known: dict[int, Sequence[Number]] = {}
    for time, step in enumerate(steps):
        if isinstance(step, Flow):
            _bodies(step, program, arrays, scope)
            for node in step.items:
                base = program.shared.get(id(node))
                arrays[id(node)] = (
                    arrays[id(base)] if base else _array(program, node, construct.contiguous(node.shape))
                )
                if base is None:
                    program.made.append(node)
            continue
        if isinstance(step, KernelCall | NumpyCall):
            for node in step.items:
                arrays[id(node)] = _array(program, node, construct.contiguous(node.shape))
                known[id(node)] = arrays[id(node)].strides
                program.made.append(node)
            continue
        if isinstance(step, Single | Product):
            node = step.node
            if id(node) not in read_by_numpy and is_reshaped_input(node, graph):
                arrays[id(node)] = Array(
                    program.words[id(node.inputs[0])], construct.contiguous(node.shape), node.dtype
                )
                program.reshaped[id(node)] = node.inputs[0]
            else:
                arrays[id(node)] = _array(program, node, construct.contiguous(node.shape))
            if isinstance(step, Product):
                known[id(node)] = arrays[id(node)].strides
                program.made.append(node)
            continue
        for store in step.stores:
            node = store.target
            if id(node) in arrays:
                continue
            if id(node) in program.shared:
                arrays[id(node)] = arrays[id(program.shared[id(node)])]
                continue
            is_plain = id(node) in plain
            order = None if is_plain else given.get(id(node)) or order_of_store(store, steps, arrays)
            strides = known[id(node)] = construct.contiguous(node.shape, order)
            old = replacing.replaced(time, store, strides, known)
            if old is not None:
                arrays[id(node)] = Array(arrays[id(old)].word, strides, node.dtype)
            else:
                arrays[id(node)] = _array(program, node, strides)
            if old is None and node not in graph.checks:
                program.made.append(node)
            if order is not None:
                program.orders[id(node)] = order
            elif id(node) in in_memory_of:
                product = in_memory_of[id(node)]
                arrays[id(product)] = arrays[id(node)]
                program.made = [one for one in program.made if one is not product]
    for node in graph.outputs:
        if flows.is_result(node) and id(node) in program.shared:
            _made_as_result(program, node, memory_of(node, program.shared))
    return arrays


def _bodies(flow: Flow, program: Program, arrays: dict[int, Array], scope: Scope) -> None:
    """Plan what is computed in a loop or branch, and lend memory for the arrays there."""
    given = [arrays[id(one)].strides if one.ndim else None for one in flow.node.inputs]
    flow.bodies = bodies_of(flow.node, given)
    for body in flow.bodies.values():
        for _, group in body.stages:
            if group is None:
                continue
            group.program, group.steps, group.arrays = _planned(
                group.graph, scope, program.config, in_flow=True
            )
            for i, name in enumerate(group.program.symbols):
                group.program.symbols[name] = len(group.program.words) + i
            for node in group.program.made:
                if node.ndim:
                    memory = Node("memory", (), node.dtype, _largest(node.shape))
                    word = _array(program, memory, construct.contiguous(memory.shape)).word
                    group.words[id(node)], group.sizes[word] = word, lifetimes.bytes_of(memory)
                    program.made.append(memory)


def _largest(shape: Sequence[Number]) -> tuple[Number, ...]:
    """A shape of as many elements as an array in a loop has at most. Raises GraphError where that is not known."""
    found = [limit(extent, is_upper=True) for extent in shape]
    if None in found:
        raise GraphError("an array in a loop, of which nothing tells how large it gets")
    return tuple(found)


def _made_as_result(program: Program, node: Node, base: Node) -> None:
    """Have an array that a loop changes where it lies be made as the result that it becomes."""
    if any(one is base for one in program.made):
        program.words[id(node)] = program.words[id(base)]
        program.made = [node if one is base else one for one in program.made]
        if id(base) in program.orders:
            program.orders[id(node)] = program.orders[id(base)]


def _array(program: Program, node: Node, strides: Sequence[Number]) -> Array:
    word = program.words[id(node)] = len(program.words)
    return Array(word, tuple(strides), node.dtype)


def _native(step: Nest | Single, results: Sequence[Node]) -> epilogues.Step | Flow:
    """A step as a kernel's product, if that is what it is and its operands lie in memory without gaps; or as a flow."""
    if isinstance(step, Single) and flows.is_flow(step.node):
        return Flow(step.node, [one for one in results if one.inputs[0] is step.node])
    if isinstance(step, Single) and flows.is_called(step.node):
        items = [one for one in results if one.inputs[0] is step.node]
        makes = kernel_calls if step.node.operation == "kernel" else numpy_calls
        return makes.call_of(step.node, items) or step
    if isinstance(step, Nest) or step.node.operation != "matmul":
        return step
    (left, right), turned = products.operands(step.node)
    made = Product(step.node, left, right, turned)
    if step.node.dtype not in FLOATS or not all(map(products.has_no_gaps, (left, right))):
        return step
    return made if made.has_kernel else step
