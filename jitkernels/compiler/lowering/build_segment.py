"""Code generation of segments: which schedule each loop nest gets, and the calls of nests, GEMMs, kernels and NumPy."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Any

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.codegen.control_flow import parallel_loop, signal_polls
from jitkernels.compiler.codegen.control_flow.region_emitter import FlowEmitter
from jitkernels.compiler.codegen.control_flow.scalar_emitter import FlowFunction
from jitkernels.compiler.codegen.core import module_text, parallel_region, swap_buffers
from jitkernels.compiler.codegen.core.cycle_counter import Clock
from jitkernels.compiler.codegen.core.fma_contraction import (
    ANY_ORDER_FLAG,
    CONTRACT_FLAG,
    uncontract_differences,
    uncontract_products,
)
from jitkernels.compiler.codegen.core.fp_special_guards import GuardedLibrary
from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.codegen.core.module_text import RequiredCode
from jitkernels.compiler.codegen.core.parallel_region import SegmentCall
from jitkernels.compiler.codegen.nest.nest_emitter import NestEmitter
from jitkernels.compiler.codegen.nest.parallel_reduction import BlockwiseEmitter
from jitkernels.compiler.codegen.nest.serpentine_order import DIRECTION
from jitkernels.compiler.codegen.steps import gemm_epilogue_rows, matmul_call, numpy_call, registry_call
from jitkernels.compiler.ir import numpy_call_spec, ops, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import cases
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow, is_control_flow
from jitkernels.compiler.ir.regions import is_tiled_loop
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import Extent, Scope, key_of_shape
from jitkernels.compiler.lowering.compiled_program import CompiledProgram, Segment
from jitkernels.compiler.lowering.transposed_copy import transposed_copy
from jitkernels.compiler.memory.lifetimes import Unit
from jitkernels.compiler.schedule.fusion import UnfusedStep
from jitkernels.compiler.schedule.kernel_step import KernelCall, NamedKernel
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.matmul_step import MatMulStep
from jitkernels.compiler.schedule.nest import heuristics
from jitkernels.compiler.schedule.nest.choose_schedule import choose_schedule
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.region_stages import scatter_written_words
from jitkernels.compiler.transforms.trip_count import work_of
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.errors import GraphError
from jitkernels.runtime import c_api
from jitkernels.runtime.loading import build_ahead
from jitkernels.runtime.threads.parallel_for import MIN_THREAD_WORK

MAX_UNROLLED = 32
"""Segments with more loops and branches than this get no inner-loop unrolling by LLVM.

So many usually come from an unrolled outer loop, where each is a small part of the work.
"""


@frozen_dataclass
class NestRequest:
    """What the choice of a nest's schedule depends on."""

    nest: LoopNest
    arrays: Mapping[Node, StridedArray]
    scope: Scope


Choose = Callable[[NestRequest], NestSchedule | None]
"""Chooses the schedule of a nest; None for the default."""
LoweredStep = LoopNest | MatMulStep | Flow | KernelCall | NumpyCall


@dataclass
class SegmentBuilder:
    """Builds the segments of a program. Their parts are appended to `emitted`."""

    arrays: dict[Node, StridedArray]
    program: CompiledProgram
    scope: Scope
    choose: Choose | None = None
    emitted: list[module_text.SegmentParts] | None = None
    texts: list[str] = field(default_factory=list)
    flows: list[str] = field(default_factory=list)
    calls: list[SegmentCall] = field(default_factory=list)
    kernels: list[External] = field(default_factory=list)
    required_code: dict[Any, RequiredCode] = field(default_factory=dict)
    is_inside = False
    """Whether nests run inside a loop or branch."""
    fresh: AbstractSet[int] = frozenset()
    """Frame slots of arrays whose elements are stored in the same iterations of that."""

    def segment(self, units: Sequence[Unit]) -> Segment:
        """Loop nests and products as one function. The epilogue of a product runs inside its kernel call.

        A unit that occurs again (rematerialization) is called again.
        """
        # Loops and branches report no floating-point errors, but for those that tile arrays.
        flows = (is_control_flow(node) and not is_tiled_loop(node) for node in self.program.graph)
        self.has_flows = self.scope.has_scalar_loops or any(flows)
        is_guarded = self.emitted is None and bool(self.program.graph.writes) and not self.has_flows
        kind = GuardedLibrary if is_guarded else Library
        # A kernel body contains what it calls: the caller declares its externals before.
        self.library = kind(alone={} if self.emitted is None else None)
        self.shares = self.calls_python = False
        calls_by_unit: dict[int, list[SegmentCall]] = {}
        number = 0
        for unit in units:
            if id(unit) in calls_by_unit:
                self.calls += calls_by_unit[id(unit)]
                continue
            before = len(self.calls)
            self._unit(unit, number)
            calls_by_unit[id(unit)] = self.calls[before:]
            number += len(unit)
        return self._finish([step for unit in units for step in unit if not isinstance(step, UnfusedStep)])

    def _unit(self, unit: Unit, first: int) -> None:
        """Emit one unit; `first`: the index of its first step."""
        product: MatMulStep | None = None
        number = first
        for number, step in enumerate(unit, first):
            if isinstance(step, Flow):
                self._flow(step, f"flow{number}")
            elif isinstance(step, MatMulStep):
                product = step
            elif isinstance(step, LoopNest):
                if not step.is_empty:
                    is_alone = product is None and self.calls_transpose
                    self._nest_or_transpose(step, f"nest{number}", product, calls_transpose=is_alone)
                    product = None
            elif isinstance(step, KernelCall | NumpyCall):
                self._call(step, str(number))
        if product is not None:
            self._product(product, f"nest{number + 1}.before")

    def _flow(self, flow: Flow, name: str) -> None:
        """Emit a loop or branch, which is called like a loop nest, and the nests in it."""
        groups = [(body, group) for body in flow.bodies.values() for group in body.groups]
        for number, (body, group) in enumerate(groups):
            group.program.profile, group.program.loops = self.program.profile, self.program.loops
            inner = self.inner_builder()(group.arrays, group.program, self.scope, self.choose)
            inner.library = self.library
            inner.has_flows, inner.fresh = self.has_flows, scatter_written_words(body, group)
            products: dict[str, Node] = {}
            for index, step in enumerate(group.steps):
                own = f"{name}.{number}.{index}"
                if isinstance(step, MatMulStep):
                    products[own] = step.node
                    inner._product(step, own)
                elif isinstance(step, LoopNest):
                    if not step.is_empty:
                        inner._nest_or_transpose(step, own, calls_transpose=self.calls_transpose)
                elif isinstance(step, KernelCall | NumpyCall):
                    inner._call(step, own)
                else:
                    raise GraphError(f"a loop or branch contains the unsupported operation {step.node.operation}")
            self.calls_python |= inner.calls_python
            self.texts += inner.texts
            self.kernels += inner.kernels
            self.required_code |= inner.required_code
            group.calls = [(call, products.get(call.name)) for call in inner.calls]
        function = FlowFunction(self.library, self.program.symbols, self.scope.loop_variant)
        emitter = FlowEmitter(self.arrays, function, flow, name)
        self.flows.append(uncontract_products(self.library, emitter.text(), all_products=True))
        if emitter.swaps:
            self._add_helper(swap_buffers.SWAP_IR)
        if emitter.countdown or emitter.shares:
            self._add_helper(signal_polls.SIGNAL_POLL_IR, c_api.signals)
        if emitter.shares:
            self._add_helper(parallel_loop.TEXT, parallel_loop.externals)
        self.calls.append(SegmentCall(name, None, work_of(flow.node), bails_out=True, clock=self._clock(flow)))

    def _add_helper(self, text: str, externals: Callable[[], Sequence[External]] = tuple) -> None:
        """Add functions that loops and branches call, once, with the externals that they link to."""
        if text not in self.flows:
            self.flows.append(text)
            self.kernels += externals()

    @property
    def calls_transpose(self) -> bool:
        """Whether transposed copies are calls of a kernel: not in kernels, which the registry takes as they are."""
        return self.emitted is None and abs(self.program.config.opt_level) >= 3

    def inner_builder(self) -> "type[RegionNestBuilder]":
        """The class that builds the nests that a loop or branch calls."""
        return RegionNestBuilder

    def _finish(self, nests: Sequence[LoweredStep]) -> Segment:
        shared = [call.work for call in self.calls if not call.bails_out]
        parallel = self.shares or any(isinstance(value, Extent) or value > MIN_THREAD_WORK for value in shared)
        parts = module_text.SegmentParts(
            self.library, self.texts, self.calls, self.flows, [*self.required_code.values()]
        )
        text = module_text.segment_text(parts, self.program.symbols, self._overlap(), parallel=parallel)
        if abs(self.program.config.opt_level) < 2:  # round every product before the addition, in order, as NumPy does
            text = text.replace(CONTRACT_FLAG, " ").replace(ANY_ORDER_FLAG, " ")
        kernels = [*self.kernels, *(check for check, _ in self.required_code.values())]
        externals = *module_text.externals(self.library, parallel=parallel), *dict.fromkeys(kernels)
        if self.emitted is not None:
            self.emitted.append(parts)
        flow_count = sum(isinstance(value, Flow) for value in nests)
        source = module_text.module_source(
            "fused", text, 64, externals, is_whole=flow_count > 0, unrolls=flow_count <= MAX_UNROLLED
        )
        work = sum((call.work for call in self.calls), 0)
        polls = signal_polls.SIGNAL_POLL_IR in self.flows or self.calls_python
        return Segment([*nests], source, work, self.program.config.cache, polls, self.calls_python)

    def _overlap(self) -> parallel_region.Overlap:
        """A predicate on frame slots: whether two arrays may alias."""
        buffers = {slot.word: slot for slot in self.program.arena.buffers}

        def overlap(slot: int, other_slot: int) -> bool:
            if slot == other_slot:
                return True
            both = buffers.get(slot), buffers.get(other_slot)
            return both[0] is not None and both[1] is not None and not both[0].meets(both[1])

        return overlap

    def _product(self, product: MatMulStep, name: str, kernel: External | None = None, after: str = "") -> None:
        """The call of a product's kernel, or of `kernel`, which calls `after` for finished rows."""
        kernel = kernel or product.external(in_parts=self._is_in_parts(product))
        if self._is_in_parts(product):
            self._require_code(product, kernel)
        self.kernels.append(kernel)
        self.texts.append(matmul_call.text_of(product, self._function(), self.arrays, name, kernel, after))
        clock = self._clock(product)
        self.calls.append(SegmentCall(name, product.batches, product.work, clock=clock))

    def _is_in_parts(self, product: MatMulStep) -> bool:
        """Whether the segment can decide at its start which parts of a GEMM kernel it needs."""
        return product.is_package_file and self.emitted is None and cases(product.sizes) is not None

    def _require_code(self, product: MatMulStep, kernel: External) -> None:
        """Let the segment check at its start whether the parts of a kernel are loaded."""
        from jitkernels.microkernels.gemm.runtime_select import parts_of_call, runtime_select_check

        check = runtime_select_check(kernel)
        for sizes in cases(product.sizes) or ():
            self.required_code[check.symbol, key_of_shape(sizes)] = check, sizes
            if build_ahead.is_on():
                m, n, k = map(symbolic_dims.value_of, sizes)
                build_ahead.begin_lazy(parts_of_call(kernel, m, n, k))

    def _call(self, call: KernelCall | NumpyCall, number: str) -> None:
        """Emit the call of a kernel or of a NumPy function."""
        if isinstance(call, KernelCall):
            name = number if "." in number else f"kernel{number}"
            self._kernel_call(call, name, self.arrays, self._clock(call))
            return
        name = number if "." in number else f"numpy{number}"
        call.reports_warnings = not self.has_flows and numpy_call_spec.may_warn(call.node.options["function"])
        self.calls_python = True
        self.texts.append(numpy_call.text_of(call, self._function(), self.arrays, name))
        self.kernels += call.externals
        self.calls.append(SegmentCall(name, None, call.work, bails_out=True, clock=self._clock(call)))

    def _kernel_call(
        self, call: KernelCall, name: str, arrays: Mapping[Node, StridedArray], clock: Clock | None
    ) -> None:
        """Emit the call of a registered kernel, with operands and results in `arrays`."""
        external = self._checked_kernel(call.kernel) or call.kernel.external
        assert external is not None, "chosen for it"
        self.kernels.append(external)
        self.texts.append(registry_call.text_of(call, self._function(), arrays, name, external))
        self.calls.append(SegmentCall(name, None, call.work, clock=clock))

    def _checked_kernel(self, kernel: NamedKernel) -> External | None:
        """The entry of a kernel in parts, if the segment can check at its start which of them it needs."""
        found, sizes = kernel.checked, cases(kernel.sizes)
        if found is None or sizes is None or self.emitted is not None:
            return None
        entry, check = found
        for one in sizes:
            self.required_code[check.symbol, key_of_shape(one)] = check, one
            kernel.begin_parts(one)
        return entry

    def _nest_or_transpose(
        self, nest: LoopNest, name: str, product: MatMulStep | None = None, *, calls_transpose: bool
    ) -> None:
        """The code of a loop nest, or the call of the kernel that transposes the array that it copies."""
        copy = transposed_copy(nest, self.arrays) if calls_transpose else None
        if copy is not None:
            self._kernel_call(copy.call, name, copy.arrays, self._clock(nest))
        else:
            self._nest(nest, name, product)

    def _nest(self, nest: LoopNest, name: str, product: MatMulStep | None) -> None:
        """The code of a loop nest and its call; the nest may be the epilogue of the `product` before it."""
        emitter = self._emitter(nest, name, self._chosen(nest, follows=product is not None))
        accesses = parallel_region.accesses_of(emitter)
        own = emitter.text()
        is_rounded = self.has_flows and not _sums_floats(nest)
        own = (uncontract_products if is_rounded else uncontract_differences)(self.library, own)
        checks = tuple(
            self.arrays[store.target].word for store in nest.stores if store.target in self.program.graph.checks
        )
        if product is not None:
            kernel = None if checks else self._epilogue_kernel(product, emitter)
            if kernel is not None:
                nest.product = product
                self.texts += [own, gemm_epilogue_rows.text_of_rows(product, emitter, f"{name}.rows")]
                self._product(product, f"{name}.product", kernel, f"{name}.rows")
                return
            self._product(product, f"{name}.before")
        loop = emitter.parallel_loop
        self.texts.append(module_text.mark_unrolled(module_text.mark_inlined(own)) if self._is_inlined(nest) else own)
        extent = None if loop is None else emitter.extents[loop]
        unit = emitter.step_lanes if loop == emitter.lane_loop else 1
        clock = self._clock(nest)
        in_run = self.emitted is None and not checks and clock is None and type(emitter) is NestEmitter
        near = accesses if in_run else None
        turns = emitter.schedule.serpentine
        self.calls.append(
            SegmentCall(name, extent, nest.work, unit, checks, clock=clock, accesses=near, serpentine_words=turns)
        )

    def _epilogue_kernel(self, product: MatMulStep, emitter: NestEmitter) -> External | None:
        """The GEMM kernel that runs a nest as its epilogue for finished rows; None where the nest needs all rows."""
        is_fused = abs(self.program.config.opt_level) >= 3
        can_run_as_epilogue = is_fused and gemm_epilogue_rows.can_run_as_epilogue(product, emitter, self.arrays)
        return product.with_row_callback(in_parts=self._is_in_parts(product)) if can_run_as_epilogue else None

    def _chosen(self, nest: LoopNest, *, follows: bool) -> NestSchedule:
        """The measured schedule of a nest, or that by heuristics, from which `choose_schedule` derives the rest."""
        measured = self.choose(NestRequest(nest, self.arrays, self.scope)) if self.choose else None
        nest.measured = measured is not None
        chosen = measured or heuristics.default_schedule(nest, self.arrays, is_in_loop=self.is_inside)
        if measured is None and follows:
            # An epilogue reads cached data, maybe in the buffer of its result: no streaming stores.
            chosen = replace(chosen, stream_bytes=0)
        is_delicate = self.emitted is None and not self.has_flows and _is_delicate(nest, self.program)
        return replace(chosen, keeps_fp_flags_exact=is_delicate)

    def _is_inlined(self, nest: LoopNest) -> bool:  # noqa: ARG002  # RegionNestBuilder uses it
        """Whether to inline a nest into its caller."""
        return False

    def _emitter(self, nest: LoopNest, name: str, chosen: NestSchedule) -> NestEmitter:
        any_size = self.emitted is not None
        loops = Loops(nest, self.arrays, chosen, any_size, self.is_inside, self.fresh)
        schedule = nest.schedule = choose_schedule(loops)
        if self.program.loops is not None:
            self.program.loops[id(nest)] = loops
        self.shares |= schedule.in_blocks
        return (BlockwiseEmitter if schedule.in_blocks else NestEmitter)(loops, schedule, self._function(), name)

    def _clock(self, step: LoopNest | MatMulStep | Flow | KernelCall | NumpyCall) -> Clock | None:
        return self.program.profile.clock(step) if self.program.profile is not None else None

    def _function(self) -> FunctionBuilder:
        return FunctionBuilder(self.library, self.program.symbols)


class RegionNestBuilder(SegmentBuilder):
    """Builds the nests inside a loop or branch, which run serially on one thread."""

    has_flows = is_inside = True
    shares = calls_python = False

    def _function(self) -> FunctionBuilder:
        """A function whose frame has one more slot: the direction of iteration."""
        symbols = self.program.symbols
        return FunctionBuilder(self.library, {**symbols, DIRECTION: len(self.program.words) + len(symbols)})

    def _is_inlined(self, nest: LoopNest) -> bool:
        """Whether a nest computes few numbers: inlined, these stay in registers and their users start earlier."""
        return heuristics.is_few_elements(nest) or not any(store.target.ndim for store in nest.stores)


def _sums_floats(nest: LoopNest) -> bool:
    """Whether a nest sums floats, in an order of its own that rounds differently anyway."""
    return any(one.options["kind"] == "sum" and one.dtype in FLOATS for one in nest.reductions)


def _is_delicate(nest: LoopNest, program: CompiledProgram) -> bool:
    """Whether inactive lanes could set floating-point flags that a warning reports.

    A program that overwrites its arguments can only report errors by the flags.
    """
    return bool(program.graph.writes) or any(map(ops.keeps_fp_flags_exact, nest.nodes))
