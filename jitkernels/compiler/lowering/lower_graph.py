"""Lowering: from a graph to a program. Optimize, schedule, assign buffers, group steps into segments, generate code."""

from collections.abc import Sequence

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.compiler.codegen.core import module_text
from jitkernels.compiler.ir import access_map, builder, region_memory
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.dim_bounds import limit
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Number, Scope
from jitkernels.compiler.lowering.build_segment import Choose, SegmentBuilder
from jitkernels.compiler.lowering.compiled_program import CompiledProgram
from jitkernels.compiler.lowering.profile_counters import Profile
from jitkernels.compiler.memory import lifetimes
from jitkernels.compiler.memory.arena import assign_offsets
from jitkernels.compiler.memory.buffer_reuse import InPlaceOutputs
from jitkernels.compiler.memory.buffer_slices import BufferSlice, BufferSlices
from jitkernels.compiler.memory.memory_aware_order import order_units
from jitkernels.compiler.memory.output_layout import layouts_of
from jitkernels.compiler.memory.rematerialization import Rematerializer
from jitkernels.compiler.passes import optimize
from jitkernels.compiler.schedule import gemm_epilogue, kernel_step, matmul_step, numpy_step, recognize_attention
from jitkernels.compiler.schedule.fusion import UnfusedStep, schedule_graph
from jitkernels.compiler.schedule.gemm_epilogue import Step
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import LoopNest, Store
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.partial_stores import is_reshaped_input
from jitkernels.compiler.schedule.region_stages import bodies_of
from jitkernels.compiler.schedule.tile_batch_dimension import tile_batch_dimension
from jitkernels.compiler.schedule.unroll_short_axes import unroll_short_axes
from jitkernels.compiler.schedule.update_in_place import memory_of
from jitkernels.compiler.transforms import bounds_checks, decompose_kernels
from jitkernels.compiler.transforms.align_loop_matrices import align_loop_matrices
from jitkernels.compiler.transforms.batch_loop_matmuls import batch_loop_products
from jitkernels.compiler.transforms.contractions import lower_contractions
from jitkernels.compiler.transforms.invariants.move_invariants import move_invariants
from jitkernels.compiler.transforms.pad_clipped_windows import pad_clipped_windows
from jitkernels.compiler.transforms.raise_reductions import raise_reductions
from jitkernels.compiler.transforms.store_if_conversion import convert_conditional_stores
from jitkernels.compiler.transforms.vectorize_loops import vectorize_loops
from jitkernels.errors import GraphError


def _with_own_results(graph: Graph) -> Graph:
    """The graph with copies of outputs and writes that are inputs or duplicates, so that each has its own array."""
    seen = {*graph.inputs, *(value for _, value in graph.writes)}
    outputs = []
    for node in graph.outputs:
        outputs.append(builder.copy(node) if node in seen else node)
        seen.add(node)
    inputs = set(graph.inputs)
    writes = [(target, builder.copy(value) if value in inputs else value) for target, value in graph.writes]
    return graph.remade(outputs, writes, graph.checks)


def compile_graph(
    graph: Graph,
    scope: Scope,
    config: JitConfig,
    choose: Choose | None = None,
    emitted: list[module_text.SegmentParts] | None = None,
    loops: dict[int, Loops] | None = None,
) -> CompiledProgram:
    """The program of a graph. The parts of its segments are appended to `emitted`, the loops of nests to `loops`."""
    program, steps, arrays = _plan(graph, scope, config)
    program.loops = loops
    outputs = set(program.graph.outputs)
    between = {program.words[node]: node for node in program.allocated if node not in outputs}
    program.place_symbols()
    if config.profile:
        program.profile = Profile(word=len(program.words) + len(program.symbols) + 1)
    segment: list[lifetimes.Unit] = []
    for unit in [*_allocate_arena(steps, program, arrays, between), ()]:
        single = unit[0] if unit and isinstance(unit[0], UnfusedStep) else None
        if unit and single is None:
            segment.append(unit)
            continue
        if single is not None and single.node in program.reshaped:
            continue
        if segment:
            program.steps.append(_segment_builder(config)(arrays, program, scope, choose, emitted).segment(segment))
            segment = []
        if single is not None:
            program.steps.append(single.node)
            if program.profile is not None:
                program.profile.clock(single.node)
    return program


def _segment_builder(config: JitConfig) -> type[SegmentBuilder]:
    """The class that builds segments: of LLVM IR, or of loops that numba compiles."""
    if config.backend != "numba":
        return SegmentBuilder
    from jitkernels.compiler.lowering.numba_segment import NumbaSegmentBuilder

    return NumbaSegmentBuilder


def _allocate_arena(
    steps: Sequence[Step], program: CompiledProgram, arrays: dict[Node, StridedArray], between: dict[int, Node]
) -> list[lifetimes.Unit]:
    """The units in execution order, after their intermediates are assigned to the arena.

    Raises MemoryLimitError where that exceeds the limit, even with rematerialization.
    """
    units = lifetimes.units_of(steps)
    uses = [lifetimes.use_of(unit, arrays) for unit in units]
    stays = [lifetimes.is_pinned(unit, program.graph) for unit in units]
    inside = lifetimes.flow_local_lifetimes(units)
    order = order_units(uses, stays, lifetimes.lifetimes(range(len(units)), uses, between, inside))
    units, uses = [units[number] for number in order], [uses[number] for number in order]
    stays = [stays[number] for number in order]
    buffers = lifetimes.lifetimes(range(len(units)), uses, between, inside)
    program.arena, memory_limit = assign_offsets(buffers), program.config.memory_limit
    if memory_limit is None:
        return units
    if program.arena.traced_bytes > memory_limit:
        input_words = frozenset(program.words[node] for node in program.graph.inputs)
        work = [lifetimes.work_of(unit) for unit in units]
        order, program.arena = Rematerializer(uses, work, stays, input_words, buffers).within(memory_limit)
        units = [units[number] for number in order]
    program.arena.limit = memory_limit
    return units


def _plan(
    graph: Graph, scope: Scope, config: JitConfig, *, in_flow: bool = False
) -> tuple[CompiledProgram, list[Step], dict[Node, StridedArray]]:
    """Rewrite and schedule a graph: the program, its steps, and the buffer of each materialized node."""
    level = abs(config.opt_level)

    def simplify(graph: Graph) -> Graph:
        graph = matmul_step.lower_matmuls(optimize(graph, config))
        # Unrolling comes last: passes would remove the copies that it inserts.
        return graph if level < 3 else matmul_step.lower_matmuls(optimize(unroll_short_axes(graph), config))

    if level >= 3 and not in_flow:
        graph = recognize_attention.recognize_attention(graph)
    lowered = decompose_kernels.decompose_fusible_kernels(graph)
    if level >= 2 and not in_flow:
        raised = pad_clipped_windows(raise_reductions(lowered, scope))
        moved = move_invariants(vectorize_loops(raised, scope), scope)
        lowered = batch_loop_products(lower_contractions(moved), scope)
    graph = simplify(lowered)
    if bounds_checks.count_gathers(graph) < bounds_checks.count_gathers(lowered):
        # NumPy checks indices even where their result is unused: keep the bounds checks.
        graph = simplify(bounds_checks.with_bounds_checks(lowered))
    if level >= 3 and not in_flow:
        graph = align_loop_matrices(convert_conditional_stores(graph))
    if level >= 3 and not in_flow and config.backend != "numba":
        graph = tile_batch_dimension(graph, scope)
    graph = region_memory.insert_copies(bounds_checks.with_bounds_checks(_with_own_results(graph)))
    graph = kernel_step.densify_kernel_operands(graph)
    program = CompiledProgram(graph, config)
    program.symbols = {name: 0 for name in scope.values if in_flow or name not in scope.loop_variant}
    schedule = schedule_graph(
        graph,
        fuse=level >= 3,
        fuse_reduce=config.fuse_reduce,
        max_fusion_size=config.max_fusion_size,
        max_inputs=config.max_inputs,
    )
    results = [node for node in graph if region_memory.is_result(node) or region_memory.is_kernel_result(node)]
    steps: list[Step] = [_lower_step(step, results) for step in schedule.steps]
    if in_flow and any(isinstance(step, UnfusedStep) and step.node.operation == "kernel" for step in steps):
        raise GraphError("a loop or branch contains a kernel that compiled code cannot call")
    if level >= 3:
        steps = gemm_epilogue.move_products_to_readers(steps, schedule.shared)
    program.shared = schedule.shared
    assignment = _BufferAssignment(program, graph, steps, scope, in_flow=in_flow)
    return program, assignment.steps, assignment.assign()


class _BufferAssignment:
    """Assigns a frame slot and strides to each materialized node of a program: `arrays`."""

    def __init__(
        self, program: CompiledProgram, graph: Graph, steps: list[Step], scope: Scope, *, in_flow: bool
    ) -> None:
        self.program, self.graph, self.scope = program, graph, scope
        self.arrays: dict[Node, StridedArray] = {}
        dense = matmul_step.factors(graph) | {graph.outputs[i] for i in graph.in_rows}
        self.dense = dense | {memory_of(node, program.shared) for node in graph if node in dense}
        requested_orders = {graph.outputs[i]: order for i, order in graph.orders}
        self.layouts = layouts_of(graph.inputs, steps, program.shared, self.dense, requested_orders)
        self.slices: dict[Node, BufferSlice] = {}
        is_fused = abs(program.config.opt_level) >= 3
        if is_fused:
            found = BufferSlices(steps, graph, program.shared, self.layouts, in_flow=in_flow)
            steps, self.slices = found.steps, found.slices
            program.shared |= {node: place.whole for node, place in found.slices.items()}
        self.steps = steps
        self.read_by_numpy = {one for step in steps if isinstance(step, UnfusedStep) for one in step.node.inputs}
        self.products = gemm_epilogue.products_in_output_memory(steps, graph, program.shared) if is_fused else {}
        self.in_place = InPlaceOutputs(steps, graph, program.shared)
        self.known_strides: dict[Node, Sequence[Number]] = {}

    def assign(self) -> dict[Node, StridedArray]:
        for node in self.graph.inputs:
            strides = node.options.get("strides")
            self._new(node, strides if strides is not None else builder.contiguous(node.shape))
        for time, step in enumerate(self.steps):
            if isinstance(step, Flow):
                self._flow(step)
            elif isinstance(step, KernelCall | NumpyCall):
                for node in step.items:
                    if node in self.slices:
                        self._place(node)
                    else:
                        self._allocate(node)
            elif isinstance(step, LoopNest):
                for store in step.stores:
                    if store.target not in self.arrays:
                        self._store(time, store)
            elif step.node not in self.read_by_numpy and is_reshaped_input(step.node, self.graph):
                (base,) = step.node.inputs
                self._alias(step.node, self.program.words[base], builder.contiguous(step.node.shape))
                self.program.reshaped[step.node] = base
            elif isinstance(step, MatMulStep):
                self._allocate(step.node)
            else:
                self._new(step.node, builder.contiguous(step.node.shape))
        for node in self.graph.outputs:
            if node in self.program.shared and (region_memory.is_result(node) or access_map.changes(node)):
                self._rename_result(node, memory_of(node, self.program.shared))
        return self.arrays

    def _new(self, node: Node, strides: Sequence[Number]) -> None:
        word = self.program.words[node] = len(self.program.words)
        self._alias(node, word, strides)

    def _alias(self, node: Node, word: int, strides: Sequence[Number]) -> None:
        self.arrays[node] = StridedArray(word, tuple(strides), node.dtype)

    def _allocate(self, node: Node) -> None:
        """Assign an array of a kernel's result, which the program allocates."""
        self._new(node, builder.contiguous(node.shape))
        self.known_strides[node] = self.arrays[node].strides
        self.program.allocated.append(node)

    def _flow(self, flow: Flow) -> None:
        """Schedule the regions of a loop or branch, and assign its results and the arrays inside."""
        strides = [self.arrays[operand].strides if operand.ndim else None for operand in flow.node.inputs]
        flow.bodies = bodies_of(flow.node, strides)
        for group in (group for body in flow.bodies.values() for group in body.groups):
            group.program, group.steps, group.arrays = _plan(group.graph, self.scope, self.program.config, in_flow=True)
            group.program.place_symbols()
            for node in group.program.allocated:
                if node.ndim:
                    memory = Node("memory", (), node.dtype, _largest(node.shape))
                    word = len(self.program.words)
                    self.program.words[memory] = group.words[node] = word
                    group.sizes[word] = lifetimes.bytes_of(memory)
                    self.program.allocated.append(memory)
        for node in flow.items:
            base = self.program.shared.get(node)
            if base is not None:
                self.arrays[node] = self.arrays[base]
            else:
                self._new(node, builder.contiguous(node.shape))
                self.program.allocated.append(node)

    def _store(self, time: int, store: Store) -> None:
        """Assign an output of a loop nest: in the memory that it shares, of an operand, or new."""
        program, node = self.program, store.target
        if node in self.slices:
            self._place(node)
            return
        if node in program.shared:
            self.arrays[node] = self.arrays[program.shared[node]]
            return
        strides, order = self.layouts[node]
        self.known_strides[node] = strides
        operand = self.in_place.take_over(time, store, strides, self.known_strides)
        if operand is not None:
            self._alias(node, self.arrays[operand].word, strides)
        else:
            self._new(node, strides)
            if node not in self.graph.checks:
                program.allocated.append(node)
        if order is not None:
            program.orders[node] = order
        elif node in self.products:
            product = self.products[node]
            self.arrays[product] = self.arrays[node]
            program.allocated = [other for other in program.allocated if other is not product]

    def _place(self, node: Node) -> None:
        """Assign a part of a concatenation, which is allocated with the first one."""
        place = self.slices[node]
        whole = place.whole
        if whole not in self.arrays and whole in self.slices:
            self._place(whole)
        elif whole not in self.arrays and whole in self.program.shared:
            self.arrays[whole] = self.arrays[memory_of(whole, self.program.shared)]
        elif whole not in self.arrays:
            strides, order = self.layouts[whole]
            self._new(whole, strides)
            self.known_strides[whole] = strides
            self.program.allocated.append(whole)
            if order is not None:
                self.program.orders[whole] = order
        self.arrays[node] = place.array(self.arrays[whole], node)

    def _rename_result(self, node: Node, base: Node) -> None:
        """Allocate an array that a loop or an update changes in place as the result that it becomes."""
        program = self.program
        if any(other is base for other in program.allocated):
            program.words[node] = program.words[base]
            program.allocated = [node if other is base else other for other in program.allocated]
            if base in program.orders:
                program.orders[node] = program.orders[base]


def _largest(shape: Sequence[Number]) -> tuple[Number, ...]:
    """An upper bound of a shape in a loop. Raises GraphError where it is unknown."""
    bounds = [limit(extent, is_upper=True) for extent in shape]
    if None in bounds:
        raise GraphError("an array in a loop whose largest size is unknown")
    return tuple(bounds)


def _lower_step(step: LoopNest | UnfusedStep, results: Sequence[Node]) -> Step:
    """A step as a GEMM call if its operands are contiguous matrices, as a control-flow step, or as it is."""
    if isinstance(step, LoopNest):
        return step
    node = step.node
    if region_memory.is_control_flow(node):
        return Flow(node, [one for one in results if one.inputs[0] is node])
    if region_memory.is_called(node):
        lowering = kernel_step if node.operation == "kernel" else numpy_step
        return lowering.call_of(node, [one for one in results if one.inputs[0] is node]) or step
    if node.operation != "matmul" or node.dtype not in FLOATS:
        return step
    (left, right), transposed = matmul_step.operands(node)
    call = MatMulStep(node, left, right, transposed)
    return call if all(map(matmul_step.has_no_gaps, (left, right))) and call.has_kernel else step
