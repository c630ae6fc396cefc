"""A segment: the code of nests and products that run one after another, and which variant of each is taken."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from jitkernels import machine
from jitkernels.attrs.base import FLOATS
from jitkernels.errors import GraphError
from jitkernels.graph import calling, cones, epilogues, guesses
from jitkernels.graph.bodies import fresh_words
from jitkernels.graph.emit import polls, programs, runs, shared_rounds, swapping
from jitkernels.graph.emit.blocks import Function
from jitkernels.graph.emit.blockwise import BlockwiseEmitter, serves
from jitkernels.graph.emit.clock import Clock
from jitkernels.graph.emit.elements import FlowFunction
from jitkernels.graph.emit.flow import FlowEmitter
from jitkernels.graph.emit.memory import Array
from jitkernels.graph.emit.nests import Emitter
from jitkernels.graph.emit.programs import Asked
from jitkernels.graph.emit.rounding import FUSED, rounded, with_differences
from jitkernels.graph.emit.runs import Call
from jitkernels.graph.emit.targets import Variant
from jitkernels.graph.emit.turning import TURN
from jitkernels.graph.emit.watched import WatchedLibrary
from jitkernels.graph.extents import Extent, Scope, key_of_shape
from jitkernels.graph.flows import Flow, is_flow
from jitkernels.graph.ir import Node
from jitkernels.graph.kernel_calls import KernelCall
from jitkernels.graph.lifetimes import Unit
from jitkernels.graph.limits import cases
from jitkernels.graph.nests import Nest
from jitkernels.graph.numpy_calls import NumpyCall
from jitkernels.graph.products import Product
from jitkernels.graph.program import Program, Segment
from jitkernels.graph.rounds import work_of
from jitkernels.graph.schedule import Single
from jitkernels.native import c_api
from jitkernels.native.language.lanes import Library
from jitkernels.native.sharing import WORK
from jitkernels.native.source import External

MOST_UNROLLED = 32
"""Loops and branches of a segment at most whose inner rounds may stand several times in the code.

More of them are rounds of a loop around that are written out, where each is a small part of the work.
"""
Choose = Callable[[Nest, Mapping[int, Array], Scope, float, int], Variant | None]
"""Which variant of a nest to take, of what cost for an element, by which static unrolling; None leaves it so."""


@dataclass
class Maker:
    """Makes the segments of a program. What is emitted for them is added to `units`."""

    arrays: dict[int, Array]
    program: Program
    scope: Scope
    choose: Choose | None = None
    units: list[programs.Unit] | None = None
    texts: list[str] = field(default_factory=list)
    flows: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    kernels: list[External] = field(default_factory=list)
    asked: dict[Any, Asked] = field(default_factory=dict)

    def segment(self, units: Sequence[Unit]) -> Segment:
        """Nests and products as one function. What a nest does for rows that a product hands on is part of that.

        What comes again is called again.
        """
        # What the body of a kernel calls is part of it: its externals are told before it is made.
        self.has_flows = any(map(is_flow, self.program.graph))  # of which nobody is warned
        is_watched = self.units is None and bool(self.program.graph.writes) and not self.has_flows
        kind = WatchedLibrary if is_watched else Library
        self.library = kind(alone={} if self.units is None else None)
        self.shares = self.calls_python = False
        made: dict[int, list[Call]] = {}
        number = 0
        for unit in units:
            if id(unit) in made:
                self.calls += made[id(unit)]
                continue
            before = len(self.calls)
            self._unit(unit, number)
            made[id(unit)] = self.calls[before:]
            number += len(unit)
        return self._made([step for unit in units for step in unit if not isinstance(step, Single)])

    def _unit(self, unit: Unit, number: int) -> None:
        """What is done at one time; `number` is that of its first step."""
        waiting: Product | None = None
        for number, step in enumerate(unit, number):  # noqa: B020
            if isinstance(step, Flow):
                self._flow(step, f"flow{number}")
            elif isinstance(step, KernelCall):
                self.kernel(step, f"kernel{number}")
            elif isinstance(step, NumpyCall):
                self.numpy(step, f"numpy{number}", hears=not self.has_flows)
            elif isinstance(step, Product):
                waiting = step
            elif isinstance(step, Nest) and not step.is_empty:
                self._nest(step, f"nest{number}", waiting)
                waiting = None
        if waiting is not None:
            self._product(waiting, f"nest{number + 1}.before")

    def _flow(self, flow: Flow, name: str) -> None:
        """A loop or branch, which is called like a nest, and the nests in it."""
        groups = [
            (body, group) for body in flow.bodies.values() for _, group in body.stages if group is not None
        ]
        for number, (body, group) in enumerate(groups):
            group.program.profile = self.program.profile
            inner = InnerMaker(group.arrays, group.program, self.scope, self.choose)
            inner.library = self.library
            inner.fresh = fresh_words(body, group)
            products: dict[str, Node] = {}
            for place, step in enumerate(group.steps):
                if isinstance(step, Product):
                    products[f"{name}.{number}.{place}"] = step.node
                    inner.product(step, f"{name}.{number}.{place}")
                elif isinstance(step, KernelCall):
                    inner.kernel(step, f"{name}.{number}.{place}")
                elif isinstance(step, NumpyCall):
                    inner.numpy(step, f"{name}.{number}.{place}", hears=False)
                    self.calls_python = True
                elif isinstance(step, Nest):
                    inner.nest(step, f"{name}.{number}.{place}")
                else:
                    raise GraphError(f"{step.node.operation} in a loop or branch")
            self.texts += inner.texts
            self.kernels += inner.kernels
            self.asked |= inner.asked
            group.calls = [(call, products.get(call.name)) for call in inner.calls]
        function = FlowFunction(self.library, self.program.symbols, self.scope.moving)
        emitter = FlowEmitter(self.arrays, function, flow, name)
        self.flows.append(rounded(self.library, emitter.text(), all_products=True))
        if emitter.swaps and swapping.TEXT not in self.flows:
            self.flows.append(swapping.TEXT)
        if (emitter.patience or emitter.shares) and polls.TEXT not in self.flows:
            self.flows.append(polls.TEXT)
            self.kernels += c_api.signals()
        if emitter.shares and shared_rounds.TEXT not in self.flows:
            self.flows.append(shared_rounds.TEXT)
            self.kernels += shared_rounds.externals()
        self.calls.append(Call(name, None, work_of(flow.node), refuses=True, clock=self._clock(flow)))

    def _made(self, nests: Sequence[Nest | Product | Flow | KernelCall | NumpyCall]) -> Segment:
        shared = [call.work for call in self.calls if not call.refuses]
        parallel = self.shares or any(isinstance(one, Extent) or one > WORK for one in shared)
        symbols, config = self.program.symbols, self.program.config
        text = programs.segment_text(
            self.library, self.texts, self.flows, self.calls, symbols, self._overlap(), [*self.asked.values()],
            parallel=parallel,
        )  # fmt: skip
        if abs(config.opt_level) < 2:  # every product is rounded before it is added to, as NumPy's are
            text = text.replace(FUSED, " ")
        many = sum(isinstance(one, Flow) for one in nests)
        kernels = [*self.kernels, *(check for check, _ in self.asked.values())]
        externals = *programs.externals(self.library, parallel=parallel), *dict.fromkeys(kernels)
        if self.units is not None:
            self.units.append(programs.Unit(self.library, [*self.texts, *self.flows], self.calls))
        work = sum((call.work for call in self.calls), 0)
        source = programs.fused(
            "fused", text, 64, externals, is_whole=many > 0, unrolls=many <= MOST_UNROLLED
        )
        asks = polls.TEXT in self.flows or self.calls_python
        return Segment([*nests], source, work, config.cache, asks, self.calls_python)

    def _overlap(self) -> runs.Overlap:
        """Whether arrays may lie in the same memory."""
        buffers = {one.word: one for one in self.program.arena.buffers}

        def overlap(one: int, other: int) -> bool:
            if one == other:
                return True
            both = buffers.get(one), buffers.get(other)
            return both[0] is not None and both[1] is not None and not both[0].meets(both[1])

        return overlap

    def _product(self, product: Product, name: str, kernel: External | None = None, after: str = "") -> None:
        """The call of a product's kernel; of the one that hands its rows on to a function, if that is given."""
        kernel = kernel or product.external(in_parts=self._is_in_parts(product))
        if self._is_in_parts(product):
            self._ask_for(product, kernel)
        self.kernels.append(kernel)
        self.texts.append(product.text(self._function(), self.arrays, name, kernel, after))
        clock = self._clock(product)
        self.calls.append(Call(name, product.batches, product.work, clock=clock))

    def _is_in_parts(self, product: Product) -> bool:
        """Whether a segment can tell at its start which parts of a product's kernel it needs."""
        return product.is_ours and self.units is None and cases(product.sizes) is not None

    def _ask_for(self, product: Product, kernel: External) -> None:
        """Have the segment ask whether what a kernel needs is there."""
        from jitkernels.loops.matmul_any_size import any_size_check

        check = any_size_check(kernel)
        for sizes in cases(product.sizes) or ():
            self.asked[check.symbol, key_of_shape(sizes)] = check, sizes

    def kernel(self, call: KernelCall, name: str) -> None:
        """The call of a kernel."""
        external = call.kernel.external
        assert external is not None, "chosen for it"
        self.kernels.append(external)
        self.texts.append(call.text(self._function(), self.arrays, name, external))
        self.calls.append(Call(name, None, call.work, clock=self._clock(call)))

    def numpy(self, call: NumpyCall, name: str, *, hears: bool) -> None:
        """The call of a function of NumPy's."""
        call.hears = hears and calling.may_warn(call.node.options["function"])
        self.calls_python = True
        self.texts.append(call.text(self._function(), self.arrays, name))
        self.kernels += call.externals
        self.calls.append(Call(name, None, call.work, refuses=True, clock=self._clock(call)))

    def _nest(self, nest: Nest, name: str, product: Product | None) -> None:
        """The code of a nest, and its call, which a product behind which it comes may do for its rows."""
        emitter = self._emitter(nest, name, self._variant(nest, follows=product is not None))
        touched = runs.touched(emitter)
        own = emitter.text()
        is_rounded = self.has_flows and not _sums(nest)
        own = (rounded if is_rounded else with_differences)(self.library, own)
        checks = tuple(
            self.arrays[id(one.target)].word for one in nest.stores if one.target in self.program.graph.checks
        )
        if product is not None:
            kernel = None if checks else self._handing_on(product, emitter)
            if kernel is not None:
                nest.product = product
                self.texts += [own, epilogues.text_of_rows(product, emitter, f"{name}.rows")]
                self._product(product, f"{name}.product", kernel, f"{name}.rows")
                return
            self._product(product, f"{name}.before")
        loop = emitter.range_loop
        self.texts.append(programs.inlined(own) if self._is_inlined(nest) else own)
        extent = None if loop is None else emitter.extents[loop]
        unit = emitter.lanes()[1] if loop == emitter.lane_loop else 1
        clock = self._clock(nest)
        in_run = self.units is None and not checks and clock is None and type(emitter) is Emitter
        near = touched if in_run else None
        self.calls.append(
            Call(name, extent, nest.work, unit, checks, clock=clock, touched=near, turns=emitter.turns)
        )

    def _handing_on(self, product: Product, emitter: Emitter) -> External | None:
        """The kernel of a product that hands its rows on to a nest; None where a nest waits for all of them."""
        is_fused = abs(self.program.config.opt_level) >= 3
        takes_rows = is_fused and epilogues.takes_rows(product, emitter, self.arrays)
        return product.handing_on(in_parts=self._is_in_parts(product)) if takes_rows else None

    def _variant(self, nest: Nest, *, follows: bool) -> Variant:
        """How a nest is made: as it measured best, or by its cost."""
        unroll, program = guesses.unroll(nest, self.arrays), self.program
        found = self.choose(nest, self.arrays, self.scope, nest.cost, unroll) if self.choose else None
        # What follows a product reads what is in the cache, maybe in the place of its result.
        stream = 0 if follows else guesses.stream(nest)
        own = found or self._guess(nest) or Variant(min(64, machine.target().vector_bytes), unroll, stream)
        nest.variant = f"{own.unroll} x {own.vector_bytes} bytes" + (", measured" if found else "")
        return Variant(
            own.vector_bytes,
            own.unroll,
            own.stream,
            own.fetches,
            is_delicate=self.units is None and not self.has_flows and _is_delicate(nest, program),
            any_size=self.units is not None,
            halves=own.halves,
            neighbours=own.neighbours,
            is_fresh=own.is_fresh,
        )

    def _guess(self, nest: Nest) -> Variant | None:  # noqa: ARG002  # of those in loops
        """A variant for where a nest is; None where it follows from what the nest computes."""
        return None

    def _is_inlined(self, nest: Nest) -> bool:  # noqa: ARG002  # of those in loops
        """Whether a nest becomes part of what calls it."""
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
    """Makes nests that a loop or branch calls, each at once and whole."""

    has_flows = True
    fresh: AbstractSet[int] = frozenset()
    """The words of arrays whose elements are written in the same rounds."""

    def nest(self, nest: Nest, name: str) -> None:
        if not nest.is_empty:
            self._nest(nest, name, None)

    def product(self, product: Product, name: str) -> None:
        self._product(product, name)

    def _guess(self, nest: Nest) -> Variant | None:
        """What it reads is in the caches since the last round: vectors that lie in two lines are what takes time.

        Of short sums it is what is left of a row.
        """
        widest, is_short = machine.target().vector_bytes, nest.row_now * nest.widest < guesses.SHORT_BYTES
        reduces = any(cone.reductions for cone in nest.cones)
        if reduces if is_short else guesses.is_stencil(nest):
            halves, width = not reduces and nest.widest >= 8, min(32, widest)
            words = {self.arrays[key].word for key in nest.read_arrays if key in self.arrays}
            is_fresh = reduces and not words.isdisjoint(self.fresh)
            return Variant(width, 1, halves=halves, neighbours=not reduces, is_fresh=is_fresh)
        return None

    def _function(self) -> Function:
        """One whose frame has a word more, which says from which end to begin."""
        symbols = self.program.symbols
        return Function(self.library, {**symbols, TURN: len(self.program.words) + len(symbols)})

    def _is_inlined(self, nest: Nest) -> bool:
        """What gives nothing but numbers: these stay in registers, where what waits for them has them sooner."""
        return not any(store.target.ndim for store in nest.stores)

    def _emitter(self, nest: Nest, name: str, variant: Variant) -> Emitter:
        return Emitter(nest, self.arrays, self._function(), variant, name)


def _sums(nest: Nest) -> bool:
    """Whether a nest adds floats up, which has no order of its own, and rounds as it comes."""
    return any(
        one.options["kind"] == "sum" and one.dtype in FLOATS for cone in nest.cones for one in cone.reductions
    )


def _is_delicate(nest: Nest, program: Program) -> bool:
    """Whether lanes that are off might set flags of the processor, which warnings hang on.

    Of what overwrites its arguments nobody but the flags can tell.
    """
    nodes = (node for cone in nest.cones for node in cone.nodes)
    return bool(program.graph.writes) or any(map(cones.is_delicate, nodes))
