"""Lowering: from a graph to a program. Optimize, schedule, assign buffers, group steps into segments, generate code."""

from collections.abc import Sequence

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.ir import builder, region_memory
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.dim_bounds import limit
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.strided_array import Array
from jitkernels.compiler.ir.symbolic_dims import Number, Scope
from jitkernels.compiler.lowering.build_segment import Choose, Maker
from jitkernels.compiler.lowering.compiled_program import Program
from jitkernels.compiler.lowering.profile_counters import Profile
from jitkernels.compiler.memory import lifetimes
from jitkernels.compiler.memory.arena import planned
from jitkernels.compiler.memory.buffer_reuse import InPlaceOutputs
from jitkernels.compiler.memory.memory_aware_order import ordered
from jitkernels.compiler.memory.output_layout import order_of_store
from jitkernels.compiler.memory.rematerialization import Rematerializer
from jitkernels.compiler.passes import optimised
from jitkernels.compiler.schedule import gemm_epilogue, kernel_step, matmul_step, numpy_step
from jitkernels.compiler.schedule.fusion import Single, scheduled
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import Nest
from jitkernels.compiler.schedule.matmul_step import Product
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.partial_stores import is_reshaped_input
from jitkernels.compiler.schedule.region_stages import bodies_of
from jitkernels.compiler.schedule.unroll_short_axes import unrolled
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.compiler.transforms import bounds_checks, decompose_kernels
from jitkernels.compiler.transforms.align_loop_matrices import with_aligned_matrices
from jitkernels.compiler.transforms.batch_loop_matmuls import batch_loop_products
from jitkernels.errors import GraphError


def _with_own_results(graph: Graph) -> Graph:
    """The graph with copies of outputs and writes that are inputs or duplicates, so that each has its own array."""
    seen = {id(node) for node in (*graph.inputs, *(value for _, value in graph.writes))}
    outputs = []
    for node in graph.outputs:
        outputs.append(builder.copy(node) if id(node) in seen else node)
        seen.add(id(node))
    input_ids = {id(node) for node in graph.inputs}
    writes = [(target, builder.copy(value) if id(value) in input_ids else value) for target, value in graph.writes]
    return graph.remade(outputs, writes, graph.checks)


def compiled(
    graph: Graph,
    scope: Scope,
    config: JitConfig,
    choose: Choose | None = None,
    units: list[module_text.Unit] | None = None,
) -> Program:
    """The program of a graph. The emitted code of its segments is appended to `units`."""
    program, steps, arrays = _planned(graph, scope, config)
    outputs = {id(node) for node in program.graph.outputs}
    between = {program.words[id(node)]: node for node in program.made if id(node) not in outputs}
    for i, name in enumerate(program.symbols):
        program.symbols[name] = len(program.words) + i
    if config.profile:
        program.profile = Profile(word=len(program.words) + len(program.symbols) + 1)
    segment: list[lifetimes.Unit] = []
    for unit in [*_in_memory(steps, program, arrays, between), ()]:
        single = unit[0] if unit and isinstance(unit[0], Single) else None
        if unit and single is None:
            segment.append(unit)
            continue
        if single is not None and id(single.node) in program.reshaped:
            continue
        if segment:
            program.steps.append(_maker(config)(arrays, program, scope, choose, units).segment(segment))
            segment = []
        if single is not None:
            program.steps.append(single.node)
            if program.profile is not None:
                program.profile.clock(single.node)
    return program


def _maker(config: JitConfig) -> type[Maker]:
    """What makes segments: the LLVM generator, or the one that prints loops for numba."""
    if config.backend != "numba":
        return Maker
    from jitkernels.compiler.lowering.numba_segment import NumbaMaker

    return NumbaMaker


def _in_memory(
    steps: Sequence[gemm_epilogue.Step], program: Program, arrays: dict[int, Array], between: dict[int, Node]
) -> list[lifetimes.Unit]:
    """The units in execution order, after their intermediates are assigned to the arena.

    Raises MemoryLimitError where that exceeds the limit, even with rematerialization.
    """
    units = lifetimes.units_of(steps)
    uses = [lifetimes.use_of(unit, arrays) for unit in units]
    stays = {id(unit): lifetimes.stays(unit, program.graph) for unit in units}
    inside = lifetimes.flow_local_lifetimes(units)
    order = ordered(uses, [*stays.values()], lifetimes.lifetimes(range(len(units)), uses, between, inside))
    units, uses = [units[number] for number in order], [uses[number] for number in order]
    buffers = lifetimes.lifetimes(range(len(units)), uses, between, inside)
    program.arena, limit = planned(buffers), program.config.memory_limit
    if limit is None:
        return units
    if program.arena.now > limit:
        input_words = frozenset(program.words[id(node)] for node in program.graph.inputs)
        work = [lifetimes.work_of(unit) for unit in units]
        order, program.arena = Rematerializer(
            uses, work, [stays[id(unit)] for unit in units], input_words, buffers
        ).within(limit)
        units = [units[number] for number in order]
    program.arena.limit = limit
    return units


def _planned(
    graph: Graph, scope: Scope, config: JitConfig, *, in_flow: bool = False
) -> tuple[Program, list[gemm_epilogue.Step], dict[int, Array]]:
    """The scheduled program, its steps, and the buffer of each materialized node."""
    lowered = decompose_kernels.decided(graph)
    if abs(config.opt_level) >= 2 and not in_flow:
        lowered = batch_loop_products(lowered, scope)
    graph = _simplified(lowered, config)
    if bounds_checks.count_gathers(graph) < bounds_checks.count_gathers(lowered):
        # NumPy checks indices even where their result is unused: keep the bounds checks.
        graph = _simplified(bounds_checks.checked(lowered), config)
    if abs(config.opt_level) >= 3 and not in_flow:
        graph = with_aligned_matrices(graph)
    graph = kernel_step.lowered(region_memory.insert_copies(bounds_checks.checked(_with_own_results(graph))))
    program = Program(graph, config)
    program.symbols = {name: 0 for name in scope.values if in_flow or name not in scope.moving}
    schedule = scheduled(
        graph,
        fuse=abs(config.opt_level) >= 3,
        fuse_reduce=config.fuse_reduce,
        largest=config.max_fusion_size,
        most_inputs=config.max_inputs,
    )
    results = [node for node in graph if region_memory.is_result(node) or region_memory.is_kernel_result(node)]
    steps: list[gemm_epilogue.Step] = [_native(step, results) for step in schedule.steps]
    if in_flow and any(isinstance(step, Single) and step.node.operation == "kernel" for step in steps):
        raise GraphError("a loop or branch contains a kernel that compiled code cannot call")
    if abs(config.opt_level) >= 3:
        steps = gemm_epilogue.brought_together(steps, schedule.shared)
    program.shared = schedule.shared
    return program, steps, _arrays(program, graph, steps, scope)


def _simplified(graph: Graph, config: JitConfig) -> Graph:
    """The graph after the passes."""
    graph = matmul_step.lowered(optimised(graph, config))
    if abs(config.opt_level) < 3:
        return graph
    # Unrolling comes last: passes would remove the copies that it inserts.
    return matmul_step.lowered(optimised(unrolled(graph), config))


def _arrays(program: Program, graph: Graph, steps: Sequence[gemm_epilogue.Step], scope: Scope) -> dict[int, Array]:
    """Assign a frame slot and strides to each materialized node."""
    arrays: dict[int, Array] = {}
    for node in graph.inputs:
        strides = node.options.get("strides")
        arrays[id(node)] = _array(program, node, strides if strides is not None else builder.contiguous(node.shape))
    in_c_order = matmul_step.factors(graph) | {id(graph.outputs[i]) for i in graph.in_rows}
    requested_orders = {id(graph.outputs[i]): order for i, order in graph.orders}
    in_c_order |= {id(memory_of(node, program.shared)) for node in graph if id(node) in in_c_order}
    read_by_numpy = {id(operand) for step in steps if isinstance(step, Single) for operand in step.node.inputs}
    is_fused = abs(program.config.opt_level) >= 3
    in_memory_of = gemm_epilogue.taken_over(steps, graph, program.shared) if is_fused else {}
    replacing = InPlaceOutputs(steps, graph, program.shared)
    known: dict[int, Sequence[Number]] = {}
    for time, step in enumerate(steps):
        if isinstance(step, Flow):
            _bodies(step, program, arrays, scope)
            for node in step.items:
                base = program.shared.get(id(node))
                arrays[id(node)] = arrays[id(base)] if base else _array(program, node, builder.contiguous(node.shape))
                if base is None:
                    program.made.append(node)
            continue
        if isinstance(step, KernelCall | NumpyCall):
            for node in step.items:
                arrays[id(node)] = _array(program, node, builder.contiguous(node.shape))
                known[id(node)] = arrays[id(node)].strides
                program.made.append(node)
            continue
        if isinstance(step, Single | Product):
            node = step.node
            if id(node) not in read_by_numpy and is_reshaped_input(node, graph):
                arrays[id(node)] = Array(program.words[id(node.inputs[0])], builder.contiguous(node.shape), node.dtype)
                program.reshaped[id(node)] = node.inputs[0]
            else:
                arrays[id(node)] = _array(program, node, builder.contiguous(node.shape))
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
            is_plain = id(node) in in_c_order
            order = None if is_plain else requested_orders.get(id(node)) or order_of_store(store, steps, arrays)
            strides = known[id(node)] = builder.contiguous(node.shape, order)
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
                program.made = [other for other in program.made if other is not product]
    for node in graph.outputs:
        if region_memory.is_result(node) and id(node) in program.shared:
            _made_as_result(program, node, memory_of(node, program.shared))
    return arrays


def _bodies(flow: Flow, program: Program, arrays: dict[int, Array], scope: Scope) -> None:
    """Schedule the regions of a loop or branch, and allocate the arrays inside."""
    strides = [arrays[id(operand)].strides if operand.ndim else None for operand in flow.node.inputs]
    flow.bodies = bodies_of(flow.node, strides)
    for body in flow.bodies.values():
        for _, group in body.stages:
            if group is None:
                continue
            group.program, group.steps, group.arrays = _planned(group.graph, scope, program.config, in_flow=True)
            for i, name in enumerate(group.program.symbols):
                group.program.symbols[name] = len(group.program.words) + i
            for node in group.program.made:
                if node.ndim:
                    memory = Node("memory", (), node.dtype, _largest(node.shape))
                    word = _array(program, memory, builder.contiguous(memory.shape)).word
                    group.words[id(node)], group.sizes[word] = word, lifetimes.bytes_of(memory)
                    program.made.append(memory)


def _largest(shape: Sequence[Number]) -> tuple[Number, ...]:
    """An upper bound of a shape in a loop. Raises GraphError where it is unknown."""
    bounds = [limit(extent, is_upper=True) for extent in shape]
    if None in bounds:
        raise GraphError("an array in a loop whose largest size is unknown")
    return tuple(bounds)


def _made_as_result(program: Program, node: Node, base: Node) -> None:
    """Allocate an array that a loop updates in place as the result that it becomes."""
    if any(other is base for other in program.made):
        program.words[id(node)] = program.words[id(base)]
        program.made = [node if other is base else other for other in program.made]
        if id(base) in program.orders:
            program.orders[id(node)] = program.orders[id(base)]


def _array(program: Program, node: Node, strides: Sequence[Number]) -> Array:
    word = program.words[id(node)] = len(program.words)
    return Array(word, tuple(strides), node.dtype)


def _native(step: Nest | Single, results: Sequence[Node]) -> gemm_epilogue.Step | Flow:
    """A step as a GEMM call if its operands are contiguous matrices, as a control-flow step, or as it is."""
    if isinstance(step, Single) and region_memory.is_control_flow(step.node):
        return Flow(step.node, [node for node in results if node.inputs[0] is step.node])
    if isinstance(step, Single) and region_memory.is_called(step.node):
        items = [node for node in results if node.inputs[0] is step.node]
        lowering = kernel_step if step.node.operation == "kernel" else numpy_step
        return lowering.call_of(step.node, items) or step
    if isinstance(step, Nest) or step.node.operation != "matmul":
        return step
    (left, right), turned = matmul_step.operands(step.node)
    call = Product(step.node, left, right, turned)
    if step.node.dtype not in FLOATS or not all(map(matmul_step.has_no_gaps, (left, right))):
        return step
    return call if call.has_kernel else step
