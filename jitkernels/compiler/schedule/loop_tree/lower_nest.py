"""Lower a scheduled loop nest to a loop tree: rows, the phases of a row, their loops, and what a step computes."""

from collections.abc import Sequence

from jitkernels.compiler.ir import access_map
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.ir.symbolic_dims import product
from jitkernels.compiler.schedule.loop_tree.lane_loops import CHUNKED, lane_loops, reduced_row_loops
from jitkernels.compiler.schedule.loop_tree.loop_statements import (
    Combined,
    Direction,
    For,
    If,
    LocalVariable,
    LoopKind,
    LoopPart,
    Prefetch,
    PrefetchedPart,
    Reduce,
    ScratchLanes,
    Statement,
    StoreElement,
    Value,
)
from jitkernels.compiler.schedule.loop_tree.lower_values import ValueLowering
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule, PhaseSchedule, RowPacking
from jitkernels.compiler.schedule.nest.nest_targets import NestTarget
from jitkernels.compiler.schedule.nest.phase_rules import first_reads, least_block
from jitkernels.compiler.schedule.nest.scratch_values import scratch_of
from jitkernels.compiler.schedule.nest.store_rules import prefetched_outputs
from jitkernels.microkernels.maths.blocked_summation import ADDS

Body = tuple[Statement, ...]


def lower_nest(loops: Loops, schedule: NestSchedule) -> Body:
    """The statements of a nest."""
    lowering = _NestLowering(loops, schedule)
    try:
        return lowering.statements()
    finally:
        loops.values.reduced.clear()
        loops.values.scratch_of_value.clear()


class _NestLowering:
    """Lowers one nest."""

    def __init__(self, loops: Loops, schedule: NestSchedule) -> None:
        self.loops, self.schedule = loops, schedule
        self.count = 0

    def statements(self) -> Body:
        schedule, loops = self.schedule, self.loops
        general: Body = () if schedule.packs_all else self._rows(schedule.order)
        for form in reversed(schedule.packed):
            general = self._packed(form, general)
        loop = schedule.parallel_loop
        if loop is None or loop != schedule.lane_loop or loops.is_in_loop:
            return general
        return (For(loop, LoopKind.PARALLEL, loops.extents[loop], general, 0),)

    def _serial(self, loop: int, body: Body, step: int, *notes: str) -> For:
        """A loop that is not vectorized; of the parallel loop, each thread runs a range."""
        is_outermost = loop == self.schedule.parallel_loop
        kind = LoopKind.PARALLEL if is_outermost and not self.loops.is_in_loop else LoopKind.SERIAL
        direction = Direction.BACKWARDS if self.loops.directions.get(loop) == -1 else Direction.FORWARDS
        if is_outermost and self.schedule.serpentine:
            direction = Direction.ALTERNATING
        return For(loop, kind, self.loops.extents[loop], body, step, direction=direction, notes=notes)

    def _packed(self, form: RowPacking, general: Body) -> Body:
        """Several short rows at once, one after another in the lanes of vectors; other rows are as in `general`."""
        loop = self.loops.lane_loop
        assert loop is not None, "rows are packed along lanes"
        body = self._rows(self.schedule.order, form.rows, form)
        if form.rows == 1 and self.schedule.packs_all:
            return body
        return (If((self.loops.extents[loop], "<=", form.longest), body, general),)

    def _rows(self, order: Sequence[int], rows: int = 1, form: RowPacking | None = None) -> Body:
        """The loops of rows, the last one by `rows` rows at a time, and all phases inside."""
        if not order:
            return self._row(form)
        loop, *inner = order
        if loop == self.schedule.lane_loop:
            return lane_loops(self.loops, self.schedule, loop, self._rows(inner, rows, form))
        step = 1 if inner else rows
        notes = (f"rows in one vector, {form.columns} lanes each",) if form and not inner and rows > 1 else ()
        return (self._serial(loop, self._rows(inner, rows, form), step, *notes),)

    def _row(self, form: RowPacking | None) -> Body:
        """All phases of a row."""
        values = self.values = ValueLowering(self.loops)
        values.count = 0
        own = self.loops.values
        own.reduced.clear()
        own.scratch_of_value.clear()
        result: list[Statement] = []
        for inner, ready in self.loops.phase_loops():
            for loops, targets in inner:
                result += self._phase(self.schedule.phase(targets[0].phase, loops), targets, form)
            if ready:
                result += self._step(ready, [], [])
        return tuple(result)

    def _phase(self, phase: PhaseSchedule, targets: list[NestTarget], form: RowPacking | None) -> list[Statement]:
        """The inner loops of a phase: reductions accumulate, outputs are stored."""
        schedule, own = self.schedule, self.loops.values
        scratch = scratch_of(self.loops.scratch_values, targets[0])
        reductions = [target for target in targets if target.reduction is not None]
        accumulators = [self._accumulator(target, phase, form) for target in reductions]
        step = (
            *self._read_prefetches(phase),
            *self._step([*targets, *scratch], accumulators, scratch, prefetches=not reductions),
        )
        for target, accumulator in zip(reductions, accumulators, strict=True):
            key = own.key(*target.reduced)
            own.reduced[key] = None
            self.values.reduced[key] = accumulator.variable
        for value in scratch:
            own.scratch_of_value[own.key(value.node, value.index_map)] = value.output
        result: list[Statement] = [*(accumulator.scratch for accumulator in accumulators)]
        if form is not None:
            result += self._packed_phase(form, phase, step)
        elif phase.jam is not None:
            result += self._jammed(phase, list(phase.loops), step)
        else:
            result += self._inner(phase, list(phase.loops), step, bool(reductions))
        if schedule.in_blocks:
            size = product(self.loops.extents[loop] for loop in phase.loops)
            blocks = For(None, LoopKind.PARALLEL, size, tuple(result), least_block(self.loops), notes=("blocks",))
            result = [blocks, *(accumulator.combined(Combined.BLOCKS) for accumulator in accumulators)]
        elif phase.loops and (schedule.lane_loop in phase.loops or form is not None):
            result += [accumulator.combined(Combined.LANES) for accumulator in accumulators]
        return result

    def _packed_phase(self, form: RowPacking, phase: PhaseSchedule, step: Body) -> Body:
        """The elements of packed rows: in one vector, or in one vector of each row at a time."""
        (loop,) = phase.loops
        notes = () if form.is_in_steps else (f"one vector: at most {form.columns} elements",)
        extent = self.loops.extents[loop]
        return (For(loop, LoopKind.VECTOR, extent, step, form.columns, form.columns, is_masked=True, notes=notes),)

    def _inner(self, phase: PhaseSchedule, loops: list[int], step: Body, reduces: bool) -> Body:
        """Nested loops of columns, in chunks where sums are accumulated in parts."""
        schedule = self.schedule
        loop, *others = loops
        extent = self.loops.extents[loop]
        if not others and loop == schedule.lane_loop and reduces:
            return reduced_row_loops(self.loops, schedule, phase, loop, step)
        body = self._inner(phase, others, step, reduces) if others else step
        if loop == schedule.lane_loop:
            return lane_loops(self.loops, schedule, loop, body, accumulates=reduces)
        notes = list[str]()
        if loop == schedule.gathered_run:
            notes.append(f"squares of {schedule.lanes} x {schedule.lanes} elements are transposed in registers")
        if not others and phase.whole_lines:
            notes.append(f"{phase.whole_lines} and more lanes are loaded by whole cache lines")
        if not others and phase.held_scalars:
            notes.append(f"beside {phase.held_scalars} and more lanes, scalars come from a rotating vector")
        runs = tuple(
            Prefetch(array, PrefetchedPart.RUN)
            for array in {array.word: array for array in self.loops.values.arrays.values()}.values()
            if array.word in phase.prefetched_runs and not others
        )
        result: Body = (self._serial(loop, (*runs, *body), 1, *notes),)
        if reduces and phase.blocked and not others:
            result = (For(None, LoopKind.SERIAL, extent, result, ADDS, notes=(CHUNKED,)),)
        return result

    def _jammed(self, phase: PhaseSchedule, loops: list[int], step: Body) -> Body:
        """Loops of rows that share loads, some rows at once by vectors, the last of which overlaps the one before."""
        loop, *inner = loops
        jam, extent = phase.jam, self.loops.extents[loop]
        assert jam is not None, "unroll and jam"
        if inner:
            body, is_last = self._jammed(phase, inner, step), len(inner) == 1
            notes = ("unroll and jam",) if is_last and jam.rows > 1 else ()
            if is_last and jam.prefetches:
                body = (
                    *(Prefetch(array, PrefetchedPart.ROW, writes=True) for array in self._stored_arrays(phase)),
                    *body,
                )
            return (self._serial(loop, body, jam.rows if is_last else 1, *notes),)
        notes = (f"{jam.vectors} vectors, unrolled",) if jam.vectors else ()
        lanes = jam.lanes * (2 if jam.pairs and not jam.vectors else 1)
        steps = For(loop, LoopKind.VECTOR, extent, step, lanes, jam.lanes, LoopPart.STEPS, notes=notes)
        return (steps, For(loop, LoopKind.VECTOR, extent, step, jam.lanes, jam.lanes, LoopPart.LAST))

    def _stored_arrays(self, phase: PhaseSchedule) -> list[StridedArray]:
        targets = (target for target in self.loops.targets if target.phase == phase.number)
        return [*{target.array.word: target.array for target in targets if target.array is not None}.values()]

    def _accumulator(self, target: NestTarget, phase: PhaseSchedule, form: RowPacking | None) -> "_Accumulator":
        self.count += 1
        kind = str(target.reduced[0].options["kind"])
        lanes = self.schedule.step_lanes if self.schedule.lane_loop in phase.loops else 1
        lanes = form.rows * form.columns if form is not None else lanes
        return _Accumulator(ScratchLanes(f"{kind}{self.count}", kind, target.reduced[0].dtype, lanes))

    def _read_prefetches(self, phase: PhaseSchedule) -> list[Statement]:
        """Prefetches of what the next row loads, or of what comes soon."""
        if not phase.read_prefetch:
            return []
        reads = first_reads(self.loops)
        ahead = PrefetchedPart.ROW if phase.number > 1 else PrefetchedPart.LINES
        return [Prefetch(array, ahead, phase.read_prefetch) for array, _, _ in reads.values()]

    def _step(
        self,
        targets: Sequence[NestTarget],
        accumulators: Sequence["_Accumulator"],
        scratch: Sequence[NestTarget],
        *,
        prefetches: bool = False,
    ) -> list[Statement]:
        """One step of the innermost loop: everything is computed before anything is stored."""
        schedule = self.schedule
        lets, values, places = self.values.lower_targets(targets)
        result: list[Statement] = [*lets]
        reductions = iter(accumulators)
        stores = list[Statement]()
        for number, (target, value, place) in enumerate(zip(targets, values, places, strict=True)):
            if place is None:
                result.append(next(reductions).element(value))
                continue
            is_streamed = any(target is self.loops.targets[i] for i in schedule.streamed)
            is_scratch = number >= len(targets) - len(scratch)
            stream_bytes = schedule.stream_bytes if is_streamed else 0
            stores.append(StoreElement(place, value, access_map.adds(target.node), is_scratch, stream_bytes))
        if prefetches and schedule.prefetches_stores:
            outputs = prefetched_outputs(self.loops, targets, schedule.step_lanes)
            stores += [Prefetch(target.output, writes=True) for target in outputs]
        return [*result, *stores]


class _Accumulator:
    """The accumulators of a reduction."""

    def __init__(self, scratch: ScratchLanes) -> None:
        self.scratch, self.variable = scratch, LocalVariable(scratch.name)

    def element(self, value: Value) -> Reduce:
        return Reduce(self.scratch.name, self.scratch.kind, value)

    def combined(self, what: Combined) -> Reduce:
        return Reduce(self.scratch.name, self.scratch.kind, None, what)
