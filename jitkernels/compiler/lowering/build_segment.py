"""Code generation of segments: which variant each loop nest gets, and the calls of nests, GEMMs, kernels and NumPy."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from jitkernels.attrs.schema.base import FLOATS
from jitkernels.codegen.python.simd_library import Library
from jitkernels.codegen.source_protocol import External
from jitkernels.compiler.codegen.control_flow import parallel_loop, signal_polls
from jitkernels.compiler.codegen.control_flow.region_emitter import FlowEmitter
from jitkernels.compiler.codegen.control_flow.scalar_emitter import FlowFunction
from jitkernels.compiler.codegen.core import module_text, parallel_region, swap_buffers
from jitkernels.compiler.codegen.core.cycle_counter import Clock
from jitkernels.compiler.codegen.core.fma_contraction import FUSED, rounded, with_differences
from jitkernels.compiler.codegen.core.fp_special_guards import GuardedLibrary
from jitkernels.compiler.codegen.core.ir_builder import Function
from jitkernels.compiler.codegen.core.module_text import Asked
from jitkernels.compiler.codegen.core.parallel_region import Call
from jitkernels.compiler.codegen.nest.nest_emitter import Emitter
from jitkernels.compiler.codegen.nest.parallel_reduction import BlockwiseEmitter, serves
from jitkernels.compiler.codegen.nest.phases import Variant
from jitkernels.compiler.codegen.nest.serpentine_order import TURN
from jitkernels.compiler.codegen.steps import gemm_epilogue_rows, matmul_call, numpy_call, registry_call
from jitkernels.compiler.ir import numpy_call_spec, op_cost
from jitkernels.compiler.ir.dim_bounds import cases
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import Flow, is_control_flow
from jitkernels.compiler.ir.strided_array import Array
from jitkernels.compiler.ir.symbolic_dims import Extent, Scope, key_of_shape
from jitkernels.compiler.lowering import heuristics
from jitkernels.compiler.lowering.compiled_program import Program, Segment
from jitkernels.compiler.memory.lifetimes import Unit
from jitkernels.compiler.schedule.fusion import Single
from jitkernels.compiler.schedule.kernel_step import KernelCall
from jitkernels.compiler.schedule.loop_nest import Nest
from jitkernels.compiler.schedule.matmul_step import Product
from jitkernels.compiler.schedule.numpy_step import NumpyCall
from jitkernels.compiler.schedule.region_stages import scatter_written_words
from jitkernels.compiler.transforms.trip_count import work_of
from jitkernels.core import cpu_target
from jitkernels.errors import GraphError
from jitkernels.runtime import c_api
from jitkernels.runtime.threads.parallel_for import WORK

MOST_UNROLLED = 32
"""Segments with more loops and branches than this get no inner-loop unrolling by LLVM.

So many usually come from an unrolled outer loop, where each is a small part of the work.
"""
Choose = Callable[[Nest, Mapping[int, Array], Scope, float, int], Variant | None]
"""Chooses a nest's variant by (nest, arrays, scope, cost per element, default unroll factor); None for the default."""


@dataclass
class Maker:
    """Builds the segments of a program. The emitted code is appended to `units`."""

    arrays: dict[int, Array]
    program: Program
    scope: Scope
    choose: Choose | None = None
    units: list[module_text.Unit] | None = None
    texts: list[str] = field(default_factory=list)
    flows: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    kernels: list[External] = field(default_factory=list)
    asked: dict[Any, Asked] = field(default_factory=dict)

    def segment(self, units: Sequence[Unit]) -> Segment:
        """Loop nests and products as one function. The epilogue of a product runs inside its kernel call.

        A unit that occurs again (rematerialization) is called again.
        """
        # A kernel body contains what it calls: the caller declares its externals before.
        self.has_flows = any(
            map(is_control_flow, self.program.graph)
        )  # loops and branches report no floating-point errors
        is_watched = self.units is None and bool(self.program.graph.writes) and not self.has_flows
        kind = GuardedLibrary if is_watched else Library
        self.library = kind(alone={} if self.units is None else None)
        self.shares = self.calls_python = False
        calls_by_unit: dict[int, list[Call]] = {}
        number = 0
        for unit in units:
            if id(unit) in calls_by_unit:
                self.calls += calls_by_unit[id(unit)]
                continue
            before = len(self.calls)
            self._unit(unit, number)
            calls_by_unit[id(unit)] = self.calls[before:]
            number += len(unit)
        return self._made([step for unit in units for step in unit if not isinstance(step, Single)])

    def _unit(self, unit: Unit, number: int) -> None:
        """The code of one unit; `number`: the index of its first step."""
        product: Product | None = None
        for number, step in enumerate(unit, number):  # noqa: B020
            if isinstance(step, Flow):
                self._flow(step, f"flow{number}")
            elif isinstance(step, KernelCall):
                self.kernel(step, f"kernel{number}")
            elif isinstance(step, NumpyCall):
                self.numpy(step, f"numpy{number}", hears=not self.has_flows)
            elif isinstance(step, Product):
                product = step
            elif isinstance(step, Nest) and not step.is_empty:
                self._nest(step, f"nest{number}", product)
                product = None
        if product is not None:
            self._product(product, f"nest{number + 1}.before")

    def _flow(self, flow: Flow, name: str) -> None:
        """A loop or branch, which is called like a loop nest, and the nests in it."""
        groups = [(body, group) for body in flow.bodies.values() for _, group in body.stages if group is not None]
        for number, (body, group) in enumerate(groups):
            group.program.profile = self.program.profile
            inner = self.inner_maker()(group.arrays, group.program, self.scope, self.choose)
            inner.library = self.library
            inner.fresh = scatter_written_words(body, group)
            products: dict[str, Node] = {}
            for index, step in enumerate(group.steps):
                if isinstance(step, Product):
                    products[f"{name}.{number}.{index}"] = step.node
                    inner.product(step, f"{name}.{number}.{index}")
                elif isinstance(step, KernelCall):
                    inner.kernel(step, f"{name}.{number}.{index}")
                elif isinstance(step, NumpyCall):
                    inner.numpy(step, f"{name}.{number}.{index}", hears=False)
                    self.calls_python = True
                elif isinstance(step, Nest):
                    inner.nest(step, f"{name}.{number}.{index}")
                else:
                    raise GraphError(f"a loop or branch contains the unsupported operation {step.node.operation}")
            self.texts += inner.texts
            self.kernels += inner.kernels
            self.asked |= inner.asked
            group.calls = [(call, products.get(call.name)) for call in inner.calls]
        function = FlowFunction(self.library, self.program.symbols, self.scope.moving)
        emitter = FlowEmitter(self.arrays, function, flow, name)
        self.flows.append(rounded(self.library, emitter.text(), all_products=True))
        if emitter.swaps and swap_buffers.TEXT not in self.flows:
            self.flows.append(swap_buffers.TEXT)
        if (emitter.patience or emitter.shares) and signal_polls.TEXT not in self.flows:
            self.flows.append(signal_polls.TEXT)
            self.kernels += c_api.signals()
        if emitter.shares and parallel_loop.TEXT not in self.flows:
            self.flows.append(parallel_loop.TEXT)
            self.kernels += parallel_loop.externals()
        self.calls.append(Call(name, None, work_of(flow.node), refuses=True, clock=self._clock(flow)))

    def inner_maker(self) -> "type[InnerMaker]":
        """What makes the nests that a loop or branch calls."""
        return InnerMaker

    def _made(self, nests: Sequence[Nest | Product | Flow | KernelCall | NumpyCall]) -> Segment:
        shared = [call.work for call in self.calls if not call.refuses]
        parallel = self.shares or any(isinstance(value, Extent) or value > WORK for value in shared)
        symbols, config = self.program.symbols, self.program.config
        text = module_text.segment_text(
            self.library, self.texts, self.flows, self.calls, symbols, self._overlap(), [*self.asked.values()],
            parallel=parallel,
        )  # fmt: skip
        if abs(config.opt_level) < 2:  # no contraction: round every product before the addition, as NumPy does
            text = text.replace(FUSED, " ")
        flow_count = sum(isinstance(value, Flow) for value in nests)
        kernels = [*self.kernels, *(check for check, _ in self.asked.values())]
        externals = *module_text.externals(self.library, parallel=parallel), *dict.fromkeys(kernels)
        if self.units is not None:
            self.units.append(module_text.Unit(self.library, [*self.texts, *self.flows], self.calls))
        work = sum((call.work for call in self.calls), 0)
        source = module_text.fused(
            "fused", text, 64, externals, is_whole=flow_count > 0, unrolls=flow_count <= MOST_UNROLLED
        )
        asks = signal_polls.TEXT in self.flows or self.calls_python
        return Segment([*nests], source, work, config.cache, asks, self.calls_python)

    def _overlap(self) -> parallel_region.Overlap:
        """A predicate on frame slots: whether two arrays may alias."""
        buffers = {slot.word: slot for slot in self.program.arena.buffers}

        def overlap(slot: int, other_slot: int) -> bool:
            if slot == other_slot:
                return True
            both = buffers.get(slot), buffers.get(other_slot)
            return both[0] is not None and both[1] is not None and not both[0].meets(both[1])

        return overlap

    def _product(self, product: Product, name: str, kernel: External | None = None, after: str = "") -> None:
        """The call of a product's kernel, or of `kernel`, which calls `after` for finished rows."""
        kernel = kernel or product.external(in_parts=self._is_in_parts(product))
        if self._is_in_parts(product):
            self._ask_for(product, kernel)
        self.kernels.append(kernel)
        self.texts.append(matmul_call.text_of(product, self._function(), self.arrays, name, kernel, after))
        clock = self._clock(product)
        self.calls.append(Call(name, product.batches, product.work, clock=clock))

    def _is_in_parts(self, product: Product) -> bool:
        """Whether the segment can decide at its start which parts of a GEMM kernel it needs."""
        return product.is_package_file and self.units is None and cases(product.sizes) is not None

    def _ask_for(self, product: Product, kernel: External) -> None:
        """Let the segment check at its start whether the parts of a kernel are loaded."""
        from jitkernels.microkernels.gemm.runtime_select import runtime_select_check

        check = runtime_select_check(kernel)
        for sizes in cases(product.sizes) or ():
            self.asked[check.symbol, key_of_shape(sizes)] = check, sizes

    def kernel(self, call: KernelCall, name: str) -> None:
        """The call of a kernel."""
        external = call.kernel.external
        assert external is not None, "chosen for it"
        self.kernels.append(external)
        self.texts.append(registry_call.text_of(call, self._function(), self.arrays, name, external))
        self.calls.append(Call(name, None, call.work, clock=self._clock(call)))

    def numpy(self, call: NumpyCall, name: str, *, hears: bool) -> None:
        """The call of a NumPy function."""
        call.hears = hears and numpy_call_spec.may_warn(call.node.options["function"])
        self.calls_python = True
        self.texts.append(numpy_call.text_of(call, self._function(), self.arrays, name))
        self.kernels += call.externals
        self.calls.append(Call(name, None, call.work, refuses=True, clock=self._clock(call)))

    def _nest(self, nest: Nest, name: str, product: Product | None) -> None:
        """The code of a loop nest and its call; the nest may be the epilogue of the `product` before it."""
        emitter = self._emitter(nest, name, self._variant(nest, follows=product is not None))
        touched = parallel_region.touched(emitter)
        own = emitter.text()
        is_rounded = self.has_flows and not _sums(nest)
        own = (rounded if is_rounded else with_differences)(self.library, own)
        checks = tuple(
            self.arrays[id(store.target)].word for store in nest.stores if store.target in self.program.graph.checks
        )
        if product is not None:
            kernel = None if checks else self._handing_on(product, emitter)
            if kernel is not None:
                nest.product = product
                self.texts += [own, gemm_epilogue_rows.text_of_rows(product, emitter, f"{name}.rows")]
                self._product(product, f"{name}.product", kernel, f"{name}.rows")
                return
            self._product(product, f"{name}.before")
        loop = emitter.range_loop
        self.texts.append(module_text.inlined(own) if self._is_inlined(nest) else own)
        extent = None if loop is None else emitter.extents[loop]
        unit = emitter.lanes()[1] if loop == emitter.lane_loop else 1
        clock = self._clock(nest)
        in_run = self.units is None and not checks and clock is None and type(emitter) is Emitter
        near = touched if in_run else None
        self.calls.append(Call(name, extent, nest.work, unit, checks, clock=clock, touched=near, turns=emitter.turns))

    def _handing_on(self, product: Product, emitter: Emitter) -> External | None:
        """The GEMM kernel that runs a nest as its epilogue for finished rows; None where the nest needs all rows."""
        is_fused = abs(self.program.config.opt_level) >= 3
        can_run_as_epilogue = is_fused and gemm_epilogue_rows.can_run_as_epilogue(product, emitter, self.arrays)
        return product.with_row_callback(in_parts=self._is_in_parts(product)) if can_run_as_epilogue else None

    def _variant(self, nest: Nest, *, follows: bool) -> Variant:
        """The variant of a nest: the measured one, or one by heuristics."""
        unroll, program = heuristics.unroll(nest, self.arrays), self.program
        measured_variant = self.choose(nest, self.arrays, self.scope, nest.cost, unroll) if self.choose else None
        # An epilogue reads cached data, maybe in the buffer of its result: no streaming stores.
        stream = 0 if follows else heuristics.stream(nest)
        own = (
            measured_variant or self._guess(nest) or Variant(min(64, cpu_target.target().vector_bytes), unroll, stream)
        )
        nest.variant = f"{own.unroll} x {own.vector_bytes} bytes" + (", measured" if measured_variant else "")
        return Variant(
            own.vector_bytes,
            own.unroll,
            own.stream,
            own.fetches,
            keeps_fp_flags_exact=self.units is None and not self.has_flows and _is_delicate(nest, program),
            any_size=self.units is not None,
            halves=own.halves,
            neighbours=own.neighbours,
            reads_recent_store=own.reads_recent_store,
        )

    def _guess(self, nest: Nest) -> Variant | None:  # noqa: ARG002  # InnerMaker uses it
        """The variant of a nest by its context; None for the one by its operations."""
        return None

    def _is_inlined(self, nest: Nest) -> bool:  # noqa: ARG002  # InnerMaker uses it
        """Whether to inline a nest into its caller."""
        return False

    def _emitter(self, nest: Nest, name: str, variant: Variant) -> Emitter:
        emitter = Emitter(nest, self.arrays, self._function(), variant, name)
        if self.units is not None or not serves(emitter):
            return emitter
        self.shares = True
        return BlockwiseEmitter(nest, self.arrays, self._function(), variant, name)

    def _clock(self, part: Nest | Product | Flow | KernelCall | NumpyCall) -> Clock | None:
        return self.program.profile.clock(part) if self.program.profile is not None else None

    def _function(self) -> Function:
        return Function(self.library, self.program.symbols)


class InnerMaker(Maker):
    """Builds the nests inside a loop or branch, which run serially on one thread."""

    has_flows = True
    fresh: AbstractSet[int] = frozenset()
    """Frame slots of arrays whose elements are stored in the same iterations."""

    def nest(self, nest: Nest, name: str) -> None:
        if not nest.is_empty:
            self._nest(nest, name, None)

    def product(self, product: Product, name: str) -> None:
        self._product(product, name)

    def _guess(self, nest: Nest) -> Variant | None:
        """The variant of a nest inside a loop; None for the default.

        Its data is cached since the last iteration, so that vectors across cache lines dominate the time; for short
        sums the remainder of a row does.
        """
        widest, is_short = (cpu_target.target().vector_bytes, nest.row_now * nest.widest < heuristics.SHORT_BYTES)
        reduces = any(cone.reductions for cone in nest.cones)
        if reduces if is_short else heuristics.is_stencil(nest):
            has_half_vectors, width = not reduces and nest.widest >= 8, min(32, widest)
            words = {self.arrays[key].word for key in nest.read_arrays if key in self.arrays}
            reads_recent_store = reduces and not words.isdisjoint(self.fresh)
            return Variant(
                width, 1, halves=has_half_vectors, neighbours=not reduces, reads_recent_store=reads_recent_store
            )
        return None

    def _function(self) -> Function:
        """A function whose frame has one more slot: the direction of iteration."""
        symbols = self.program.symbols
        return Function(self.library, {**symbols, TURN: len(self.program.words) + len(symbols)})

    def _is_inlined(self, nest: Nest) -> bool:
        """Whether a nest computes scalars only: inlined, these stay in registers and their users start earlier."""
        return not any(store.target.ndim for store in nest.stores)

    def _emitter(self, nest: Nest, name: str, variant: Variant) -> Emitter:
        return Emitter(nest, self.arrays, self._function(), variant, name)


def _sums(nest: Nest) -> bool:
    """Whether a nest sums floats, in an order of its own that rounds differently anyway."""
    return any(
        reduction.options["kind"] == "sum" and reduction.dtype in FLOATS
        for cone in nest.cones
        for reduction in cone.reductions
    )


def _is_delicate(nest: Nest, program: Program) -> bool:
    """Whether inactive lanes could set floating-point flags that a warning reports.

    A program that overwrites its arguments can only report errors by the flags.
    """
    nodes = (node for cone in nest.cones for node in cone.nodes)
    return bool(program.graph.writes) or any(map(op_cost.keeps_fp_flags_exact, nodes))
