"""Segments whose nests numba compiles: products, kernels and calls of NumPy are as in those of the LLVM generator."""

from typing import Any

from jitkernels.compiler.codegen.core.parallel_region import Call
from jitkernels.compiler.codegen.nest.phases import Variant
from jitkernels.compiler.codegen.numba.flow_printer import FlowPrinter, unprintable
from jitkernels.compiler.codegen.numba.nest_printer import NestPrinter
from jitkernels.compiler.ir.region_memory import Flow
from jitkernels.compiler.lowering.build_segment import InnerMaker, Maker
from jitkernels.compiler.schedule.loop_nest import Nest
from jitkernels.compiler.transforms.trip_count import work_of

PLAIN = Variant(any_size=True)


class NumbaInnerMaker(InnerMaker):
    """Nests that a loop or branch calls, whose arrays may be versions of one another."""

    def _emitter(self, nest: Nest, name: str, variant: Variant) -> Any:  # noqa: ARG002
        found = NestPrinter(nest, self.arrays, self._function(), PLAIN, name)
        found.is_alone = False
        return found

    def _variant(self, nest: Nest, *, follows: bool) -> Variant:  # noqa: ARG002
        nest.variant = "by numba"
        return PLAIN


class NumbaMaker(Maker):
    """Makes the segments of a program."""

    def inner_maker(self) -> type[InnerMaker]:
        return NumbaInnerMaker

    def _emitter(self, nest: Nest, name: str, variant: Variant) -> Any:  # noqa: ARG002
        found = NestPrinter(nest, self.arrays, self._function(), PLAIN, name)
        found.is_alone = self.units is None  # kernels may write an array over one that they read
        return found

    def _variant(self, nest: Nest, *, follows: bool) -> Variant:  # noqa: ARG002
        nest.variant = "by numba"
        return PLAIN

    def _flow(self, flow: Flow, name: str) -> None:
        """A loop or branch; what Python cannot say is the LLVM generator's, with nests by numba."""
        if unprintable(flow):
            super()._flow(flow, name)
            return
        printer = FlowPrinter(self.arrays, self.program.symbols, self.scope.moving, flow, name, self.library)
        self.flows.append(printer.text())
        self.calls.append(Call(name, None, work_of(flow.node), refuses=True, clock=self._clock(flow)))

    def _handing_on(self, product: Any, emitter: Any) -> None:  # noqa: ARG002
        return None
