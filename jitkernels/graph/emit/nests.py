"""One nest of a schedule as a function ``i64 @name(ptr frame, i64 begin, i64 end)``: a part of its outermost loop.

Rows are the outer loops. In every row come phases: reductions whose inputs are known, each with what else the loops of
its phase compute; the columns of a root are stored in the phase behind its last reduction. Steps of one of the loops are
lanes of vectors: of the one along which most arrays lie without gaps. If that is a loop of columns, a reduction ends with
one number for the row. If it is a loop of rows, every lane is a row of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jitkernels.graph import cones, extents
from jitkernels.graph.construct import IndexMap
from jitkernels.graph.emit.blocks import Block, Function, Register, llvm_type
from jitkernels.graph.emit.reductions import Accumulator
from jitkernels.graph.emit.values import Array, Pair, Values
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node
from jitkernels.graph.schedule import Nest
from jitkernels.native.language.types import NUMBERS

STASHED = 10.0
"""What takes as many additions is not computed again for the same element of a row."""
CHUNK = 4096
"""Elements of which a sum of floats is one part."""


@dataclass(frozen=True)
class Variant:
    """How a nest is made: bytes of a vector, and how many of them a step of the loop takes at once."""

    vector_bytes: int = 64
    unroll: int = 2


@dataclass
class Target:
    """What a phase computes: the input of a reduction, or a root to be stored. `loops` are those of its phase."""

    node: Node
    place: IndexMap
    phase: int
    loops: tuple[int, ...]
    reduction: Pair | None = None
    array: Array | None = None


@dataclass
class Emitter:
    """Writes one nest."""

    nest: Nest
    arrays: dict[int, Array]
    function: Function
    variant: Variant
    name: str
    extents: dict[int, Number] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        nest = self.nest
        loops = [*nest.rows, *nest.columns]
        self.extents = dict(enumerate(loops))
        self.rows = list(range(len(nest.rows)))
        self.columns = list(range(len(nest.rows), len(loops)))
        inside = {id(store.cone.root) for store in nest.stores}
        outside = {key: array for key, array in self.arrays.items() if key not in inside}
        self.values = Values(self.function, outside, None, self.inside)
        self.targets = self._targets()
        self._collapse()
        self.values.lane_loop = self.lane_loop = self._lane_loop()
        self.accumulators: list[Accumulator] = []
        self.stashes = self._stashes()

    # What is computed -------------------------------------------------------------------------------------------------

    def inside(self, node: Node, number: int, place: IndexMap) -> IndexMap:
        """The place of an input. Loops of a reduction over as many columns as the nest has are those."""
        where = cones.place_in(node, number, place)
        if node.operation == "reduce":
            loops = dict(
                zip(
                    range(cones.INNER, cones.INNER + len(node.options["axes"])),
                    self.loops_of(node),
                    strict=True,
                )
            )
            where = tuple(
                (start, tuple((loops.get(loop, loop), step) for loop, step in steps))
                for start, steps in where
            )
        return self._without(where)

    def _without(self, place: IndexMap) -> IndexMap:
        if not self.dropped:
            return place
        return tuple(
            (start, tuple((loop, step) for loop, step in steps if loop not in self.dropped))
            for start, steps in place
        )

    def loops_of(self, reduction: Node) -> tuple[int, ...]:
        """The loops over what a reduction reduces."""
        shape = [reduction.inputs[0].shape[i] for i in reduction.options["axes"]]
        if extents.key_of_shape(shape) == extents.key_of_shape(self.nest.columns):
            return tuple(range(len(self.nest.rows), len(self.nest.rows) + len(shape)))
        first = cones.INNER
        while any(
            first + i in self.extents and not same(self.extents[first + i], one)
            for i, one in enumerate(shape)
        ):
            first += 64
        self.extents |= {first + i: one for i, one in enumerate(shape)}
        return tuple(range(first, first + len(shape)))

    def _targets(self) -> list[Target]:
        targets: list[Target] = []
        self.phases: dict[Any, int] = {}
        done: dict[Any, Target] = {}
        for store in self.nest.stores:
            cone, order, array = store.cone, store.order, self.arrays[id(store.target)]
            if store.region is not None:
                array = array.region(store.region, cone.root.ndim)
            place: IndexMap = tuple((0, ((order.index(i), 1),)) for i in range(cone.root.ndim))
            targets += self._reductions(cone.root, place, done)
            phase = 1 + self._last_phase(cone.root, place)
            loops = tuple(self.columns) if cone.root.ndim > len(self.rows) else ()
            targets.append(Target(cone.root, place, phase, loops, array=array))
        return targets

    def _reductions(self, root: Node, place: IndexMap, done: dict[Any, Target]) -> list[Target]:
        """The reductions that a root needs, each behind those that it needs itself."""
        found: list[Target] = []
        stack: list[tuple[Node, IndexMap, bool]] = [(root, place, False)]
        seen: set[Any] = set()
        while stack:
            node, where, expanded = stack.pop()
            key = self.values.key(node, where)
            if expanded:
                inner = self.inside(node, 0, where)
                phase = 1 + self._last_phase(node.inputs[0], inner)
                self.phases[key] = phase
                target = Target(node.inputs[0], inner, phase, self.loops_of(node), reduction=(node, where))
                done[key] = target
                found.append(target)
                continue
            if key in seen or key in done or id(node) in self.values.arrays:
                continue
            seen.add(key)
            if node.operation == "reduce":
                stack.append((node, where, True))
            stack += [(one, self.inside(node, i, where), False) for i, one in enumerate(node.inputs)]
        return found

    def _last_phase(self, node: Node, place: IndexMap) -> int:
        """The phase of the last reduction that a node needs; 0 if it needs none."""
        last, seen = 0, set()
        stack = [(node, place)]
        while stack:
            one, where = stack.pop()
            key = self.values.key(one, where)
            if key in seen or id(one) in self.values.arrays:
                continue
            seen.add(key)
            if key in self.phases:
                last = max(last, self.phases[key])
                continue
            stack += [(inner, self.inside(one, i, where)) for i, inner in enumerate(one.inputs)]
        return last

    def _stashes(self) -> list[Target]:
        """What takes long in an early phase and is needed again where a root is stored: kept in the root's own array."""
        found: list[Target] = []
        read = {array.word for array in self.values.arrays.values()}
        for target in self.targets:
            array = target.array
            if array is None or not target.loops or target.phase < 2 or array.word in read:
                continue
            early: dict[Any, int] = {}
            for other in self.targets:
                if other.reduction is not None and other.phase < target.phase and other.loops == target.loops:
                    for pair in self.values.needed(other.node, other.place):
                        early.setdefault(self.values.key(*pair), other.phase)
            chosen = next(
                (
                    (node, place)
                    for node, place in reversed(self.values.needed(target.node, target.place))
                    if self.values.key(node, place) in early
                    and cones.own_cost(node) >= STASHED
                    and node.dtype == array.dtype
                    and cones.key_of(place) == cones.key_of(target.place)
                    and id(node) not in self.values.arrays
                ),
                None,
            )
            if chosen is not None:
                phase = early[self.values.key(*chosen)]
                found.append(Target(*chosen, phase, target.loops, array=array))
        return found

    # Loops ------------------------------------------------------------------------------------------------------------

    def _accesses(self) -> list[dict[int, Number]]:
        """How far each loop goes in each array that is read or written, and in counts."""
        found: list[dict[int, Number]] = []
        for target in self.targets:
            if target.array is not None:
                found.append(self.values.coefficients(target.array.strides, target.place)[1])
            for node, place in self.values.needed(target.node, target.place):
                if id(node) in self.values.arrays:
                    found.append(self.values.coefficients(self.values.arrays[id(node)].strides, place)[1])
                elif node.operation == "iota":
                    found.append(dict(place[node.options["axis"]][1]))
                elif node.operation == "reduce" and node.options["kind"] in ("argmin", "argmax"):
                    found.append(dict.fromkeys(self.loops_of(node), 1))
        return found

    def _collapse(self) -> None:
        """Make one loop of two where each array goes on at the end of the inner one as from one step to the next."""
        accesses = self._accesses()
        for group in (self.rows, self.columns):  # a loop of one step is none
            single = [loop for loop in group if same(self.extents[loop], 1) and not self._is_reduced(loop)]
            group[:] = [loop for loop in group if loop not in single]
            self.dropped |= frozenset(single)
        own = {target.loops for target in self.targets if target.loops and target.loops[0] >= cones.INNER}
        for group in (self.rows, self.columns, *map(list, sorted(own))):
            for outer, inner in reversed([*zip(group, group[1:], strict=False)]):
                extent = self.extents[inner]
                if all(
                    same(access.get(outer, 0), access.get(inner, 0) * extent) for access in accesses
                ) and not any(
                    target.loops and inner in target.loops and outer not in target.loops
                    for target in self.targets
                ):
                    self.extents[inner] = self.extents[outer] * extent
                    for access in accesses:
                        access.pop(outer, None)
                    group.remove(outer)
                    self.dropped |= {outer}
        if self.dropped:
            for target in self.targets:
                target.place = self._without(target.place)
                target.loops = tuple(loop for loop in target.loops if loop not in self.dropped)
                if target.reduction is not None:
                    node, place = target.reduction
                    target.reduction = node, self._without(place)

    def _is_reduced(self, loop: int) -> bool:
        return any(target.reduction is not None and loop in target.loops for target in self.targets)

    def _lane_loop(self) -> int | None:
        """The loop along which most arrays lie without gaps; of equals, the innermost."""
        candidates = [
            *self.rows,
            *(loop for loop in self.extents if loop not in self.rows and loop not in self.dropped),
        ]
        accesses = self._accesses()
        best, most = None, -1e9
        for loop in candidates:
            score = 0.0
            for access in accesses:
                step = access.get(loop, 0)
                score += 1 if same(step, 1) else 0.2 if same(step, 0) else -1
            # A guess from the call that was traced, on which nothing but speed depends.
            length = extents.value_of(self.extents[loop])
            score -= 2 if length < 4 else 1 if length < 12 else 0
            if score >= most:
                best, most = loop, score
        return best

    @property
    def order(self) -> list[int]:
        """The loops of rows, that of lanes last."""
        return sorted(self.rows, key=lambda loop: (loop == self.lane_loop, loop))

    def lanes(self) -> tuple[int, int]:
        """Lanes of one vector, and of as many as a step takes."""
        sizes = [
            NUMBERS[node.dtype].size
            for cone in self.nest.cones
            for node in cone.nodes
            if node.operation != "iota"
        ]
        sizes += [NUMBERS[node.dtype].size for cone in self.nest.cones for node in cone.leaves.values()]
        narrow = max(self.variant.vector_bytes // max([*sizes, 1]), 1)
        return narrow, narrow * self.variant.unroll

    @property
    def range_loop(self) -> int | None:
        """The outermost loop, parts of which can run apart; None where a reduction spans everything."""
        if self.order:
            return self.order[0]
        if any(target.reduction for target in self.targets) or not self.columns:
            return None
        return self._inner_order(tuple(self.columns))[0]

    def _inner_order(self, loops: tuple[int, ...]) -> list[int]:
        return sorted(loops, key=lambda loop: (loop == self.lane_loop, loop))

    # Text -------------------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The function."""
        block = self.function.block
        self._rows(block, self.order)
        body = "\n".join([*self.function.memory, *block.lines])
        return (
            f"define internal i64 @{self.name}(ptr noalias readonly %frame, i64 %begin, i64 %end) noinline nounwind {{\n{body}\n"
            f"  ret i64 0\n}}"
        )

    def _limits(self, loop: int) -> tuple[str, str]:
        if loop == self.range_loop:
            return "%begin", "%end"
        return "0", self.function.extent(self.extents[loop])

    def _rows(self, block: Block, loops: list[int]) -> None:
        """The loops of rows, one in another, and what is done in a row."""
        if not loops:
            self._row(block)
            return
        loop, *inner = loops
        self._loop(block, loop, self._limits(loop), lambda inside: self._rows(inside, inner))

    def _loop(self, block: Block, loop: int, limits: tuple[str, str], body: Callable[[Block], None]) -> None:
        """A loop; if its steps are lanes, by as many as go at once, and then by vectors of which some lanes may be off."""
        begin, end = limits
        if loop != self.lane_loop:
            self.counted(block, loop, begin, end, 1, 1, body)
            return
        narrow, wide = self.lanes()
        self.in_lanes(block, loop, (begin, end), narrow, wide, body)

    def in_lanes(
        self, block: Block, loop: int, limits: tuple[str, str], narrow: int, wide: int, body: Callable[[Block], None]
    ) -> None:
        """A loop whose steps are lanes: whole steps, and what is left by vectors of which some lanes may be off."""
        begin, end = limits
        new = self.function.new
        count = new(block, f"sub nsw i64 {end}, {begin}")
        whole = new(block, f"and i64 {count}, {-wide}")
        stop = new(block, f"add nsw i64 {begin}, {whole}")
        self.counted(block, loop, begin, stop, wide, wide, body)
        self.counted(block, loop, stop, end, narrow, narrow, body, masked=narrow > 1)

    def counted(
        self,
        block: Block,
        loop: int | None,
        begin: str,
        end: str,
        step: int,
        lanes: int,
        body: Callable[[Block], None],
        *,
        masked: bool = False,
    ) -> None:
        """A loop from begin to end; `masked`: lanes behind the end are off."""
        function = self.function
        counter = function.variable("i64")
        head, inside, after = (function.label() for _ in range(3))
        index = function.name()
        inner = Block(block, loop, index, lanes)
        if loop is None:
            inner.loop = -1
        if masked:
            inner.mask = self._mask(inner, index, end, lanes)
        body(inner)
        following, more = function.name(), function.name()
        block.lines += [
            f"  store i64 {begin}, ptr {counter}",
            f"  br label %{head}",
            f"{head}:",
            f"  {index} = load i64, ptr {counter}",
            f"  {more} = icmp slt i64 {index}, {end}",
            f"  br i1 {more}, label %{inside}, label %{after}",
            f"{inside}:",
            *inner.lines,
            f"  {following} = add nsw i64 {index}, {step}",
            f"  store i64 {following}, ptr {counter}",
            f"  br label %{head}, !llvm.loop !0",
            f"{after}:",
        ]

    def _mask(self, block: Block, index: str, end: str, lanes: int) -> str:
        name = f"llvm.get.active.lane.mask.v{lanes}i1.i64"
        self.function.library.declare(name, f"<{lanes} x i1>", ["i64", "i64"])
        return self.function.new(block, f"call <{lanes} x i1> @{name}(i64 {index}, i64 {end})")

    def _row(self, block: Block) -> None:
        """All phases of one row, or of as many as there are lanes."""
        for phase in range(1, max((target.phase for target in self.targets), default=0) + 1):
            inner: dict[tuple[int, ...], list[Target]] = {}
            for target in self.targets:
                if target.phase == phase and target.loops:
                    inner.setdefault(target.loops, []).append(target)
            for loops, targets in inner.items():
                self._phase(block, self._inner_order(loops), targets)
            for target in self.targets:
                if target.phase == phase and not target.loops and target.array is not None:
                    value = self.values.value(block, target.node, target.place)
                    self.values.store(block, target.array, target.place, value)

    def _phase(self, block: Block, loops: list[int], targets: list[Target]) -> None:
        """One nest of inner loops: reductions take their elements, roots are stored."""
        narrow, wide = self.lanes()
        reductions = [target for target in targets if target.reduction is not None]
        stashes = [one for one in self.stashes if one.phase == targets[0].phase and set(one.loops) == set(loops)]

        def step(inside: Block) -> None:
            # All is read before anything is written: what is written may be what another root reads here.
            stored = [
                (target, self.values.value(inside, target.node, target.place))
                for target in (*targets, *stashes)
                if target.reduction is None
            ]
            for target, accumulator in zip(reductions, self.accumulators, strict=True):
                value = self.values.in_lanes(inside, target.node, target.place)
                index = self._index(inside, target) if accumulator.is_index else ""
                accumulator.take(inside, value, self.values.mask(inside), index)
            for target, value in stored:
                assert target.array is not None, "a root"
                self.values.store(inside, target.array, target.place, value)

        if self.lane_loop not in loops or not reductions:
            self.accumulators = self._begun(block, reductions, self.values.lanes(block), is_long=True)
            self._inner(block, loops, step)
        elif len(loops) > 1:
            self.accumulators = self._begun(block, reductions, wide, is_long=True)
            self._inner(block, loops, step)
            self.accumulators = self._given(block, reductions, 1)
        else:
            self._in_two_widths(block, loops[0], reductions, narrow, wide, step)
        for target, accumulator in zip(reductions, self.accumulators, strict=True):
            assert target.reduction is not None, "chosen"
            self.values.reduced[self.values.key(*target.reduction)] = block, accumulator.result(block)
        for one in stashes:
            assert one.array is not None, "a root's"
            self.values.stashed[self.values.key(one.node, one.place)] = one.array

    def _in_two_widths(
        self, block: Block, loop: int, reductions: list[Target], narrow: int, wide: int, step: Callable[[Block], None]
    ) -> None:
        """A row that is reduced: by as many vectors as a step takes, if it is as long, and by single ones to its end."""
        first, end = self._limits(loop)
        new = self.function.new
        rest = self._begun(block, reductions, narrow, is_long=False)
        count = new(block, f"sub nsw i64 {end}, {first}")
        whole = new(block, f"and i64 {count}, {-wide}")
        stop = new(block, f"add nsw i64 {first}, {whole}")
        inside = Block(block, -1)
        self.accumulators = self._begun(inside, reductions, wide, is_long=True)
        self._in_parts(inside, loop, (first, stop), wide, max(CHUNK, wide), step)
        for one, other in zip(self.accumulators, rest, strict=True):
            one.give(inside, other)
        some, together, after = new(block, f"icmp sgt i64 {whole}, 0"), self.function.label(), self.function.label()
        block.lines += [f"  br i1 {some}, label %{together}, label %{after}", f"{together}:", *inside.lines]
        block.lines += [f"  br label %{after}", f"{after}:"]
        self.accumulators = rest
        self.counted(block, loop, stop, end, narrow, narrow, step, masked=narrow > 1)
        self.accumulators = self._given(block, reductions, 1)

    def _begun(self, block: Block, reductions: list[Target], lanes: int, *, is_long: bool) -> list[Accumulator]:
        """Accumulators of so many lanes that have taken nothing."""
        found = [self._accumulator(target, lanes, is_long=is_long) for target in reductions]
        for one in found:
            one.begin(block)
        return found

    def _given(self, block: Block, reductions: list[Target], lanes: int) -> list[Accumulator]:
        """Accumulators of so many lanes that have taken what those at hand have."""
        found = self._begun(block, reductions, lanes, is_long=False)
        for one, other in zip(self.accumulators, found, strict=True):
            one.give(block, other)
        return found

    def _inner(self, block: Block, loops: list[int], step: Callable[[Block], None]) -> None:
        """Loops of columns, one in another, that of lanes last."""
        loop, *others = loops
        begin, end = self._limits(loop)
        narrow, wide = self.lanes()
        if others:
            self.counted(block, loop, begin, end, 1, 1, lambda inside: self._inner(inside, others, step))
        elif loop != self.lane_loop:
            self._in_parts(block, loop, (begin, end), 1, CHUNK // 16, step)
        elif self.accumulators:  # which are as wide through all loops
            for one in self.accumulators:
                one.next_part(block)
            self.in_lanes(block, loop, (begin, end), wide, wide, step)
        else:
            self.in_lanes(block, loop, (begin, end), narrow, wide, step)

    def _in_parts(
        self, block: Block, loop: int, limits: tuple[str, str], width: int, part: int, step: Callable[[Block], None]
    ) -> None:
        """A loop in steps of a width; where sums are taken in parts, one loop for each of these."""
        begin, end = limits
        if not any(one.in_parts for one in self.accumulators):
            self.counted(block, loop, begin, end, width, width, step)
            return
        new = self.function.new

        def one_part(inside: Block) -> None:
            for one in self.accumulators:
                one.next_part(inside)
            ahead = new(inside, f"add nsw i64 {inside.index}, {part}")
            less = new(inside, f"icmp slt i64 {ahead}, {end}")
            until = new(inside, f"select i1 {less}, i64 {ahead}, i64 {end}")
            self.counted(inside, loop, inside.index, until, width, width, step)

        self.counted(block, None, begin, end, part, 1, one_part)

    def _index(self, block: Block, target: Target) -> str:
        """The number of an element along the axis that is searched, in all lanes."""
        (loop,) = target.loops
        found = next(one for one in block.path() if one.loop == loop)
        lanes = self.values.lanes(block)
        everywhere = self.values.function
        if lanes == 1:
            return found.index
        from jitkernels.graph.emit.conversions import spread

        text = spread(everywhere, block, Register(found.index, "int64"), lanes).text
        if loop != self.lane_loop:
            return text
        numbers = "<" + ", ".join(f"i64 {lane}" for lane in range(lanes)) + ">"
        return everywhere.new(block, f"add nsw {llvm_type('int64', lanes)} {text}, {numbers}")

    def _accumulator(self, target: Target, lanes: int, *, is_long: bool) -> Accumulator:
        assert target.reduction is not None, "of a reduction"
        node = target.reduction[0]
        kind = node.options["kind"]
        dtype = target.node.dtype if kind in ("argmin", "argmax") else node.dtype
        return Accumulator(self.values, kind, dtype, lanes, is_long)
