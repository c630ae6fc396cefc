"""Segments whose nests numba compiles: products, kernels and calls of NumPy are as in those of the LLVM generator."""

from typing import Any

from jitkernels.compiler.codegen.core.parallel_region import SegmentCall
from jitkernels.compiler.codegen.numba.flow_printer import FlowPrinter, unprintable
from jitkernels.compiler.codegen.numba.nest_printer import NestPrinter
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.lowering.build_segment import RegionNestBuilder, SegmentBuilder
from jitkernels.compiler.schedule.loop_nest import LoopNest
from jitkernels.compiler.schedule.nest.choose_schedule import choose_schedule
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule
from jitkernels.compiler.transforms.trip_count import work_of


class _NumbaNests(SegmentBuilder):
    """Prints loop nests for numba. `has_distinct_arrays`: no array of a nest is a version of another."""

    has_distinct_arrays = False

    def _emitter(self, nest: LoopNest, name: str, chosen: NestSchedule) -> Any:
        loops = Loops(nest, self.arrays, chosen, any_size=True)
        printer = NestPrinter(loops, choose_schedule(loops), self._function(), name)
        printer.is_alone = self.has_distinct_arrays
        return printer

    def _chosen(self, nest: LoopNest, *, follows: bool) -> NestSchedule:  # noqa: ARG002
        return NestSchedule()


class NumbaRegionNestBuilder(_NumbaNests, RegionNestBuilder):
    """Builds nests that a loop or branch calls, whose arrays may be versions of one another."""


class NumbaSegmentBuilder(_NumbaNests):
    """Builds the segments of a program."""

    def __post_init__(self) -> None:
        self.has_distinct_arrays = self.emitted is None  # kernels may write an array over one that they read

    @property
    def calls_transpose(self) -> bool:
        return False

    def inner_builder(self) -> type[RegionNestBuilder]:
        return NumbaRegionNestBuilder

    def _flow(self, flow: Flow, name: str) -> None:
        """Emit a loop or branch; as LLVM IR, with nests by numba, where Python cannot express it."""
        if unprintable(flow):
            super()._flow(flow, name)
            return
        printer = FlowPrinter(self.arrays, self.program.symbols, self.scope.loop_variant, flow, name, self.library)
        self.flows.append(printer.text())
        self.calls.append(SegmentCall(name, None, work_of(flow.node), bails_out=True, clock=self._clock(flow)))

    def _epilogue_kernel(self, product: Any, emitter: Any) -> None:  # noqa: ARG002
        return None
