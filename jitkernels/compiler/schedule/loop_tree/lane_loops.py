"""The lane loop of a nest as the loops that it becomes: peeled iterations, unrolled vectors, and the remainder."""

from jitkernels.compiler.schedule.loop_tree.loop_statements import (
    Direction,
    For,
    If,
    LoopKind,
    LoopPart,
    Misaligned,
    Statement,
)
from jitkernels.compiler.schedule.nest.halved_lanes import halved_lanes
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule, PhaseSchedule, RecentStore, Remainder
from jitkernels.compiler.schedule.nest.store_rules import MIN_PEELED_VECTORS
from jitkernels.microkernels.maths.blocked_summation import ADDS

Body = tuple[Statement, ...]
CHUNKED = "accumulated in chunks, which are combined in pairs"
"""What is known of a loop over chunks of a reduction."""


class _LaneLoop:
    """Makes the loops over vectors of a lane loop."""

    def __init__(self, loops: Loops, schedule: NestSchedule, loop: int, body: Body) -> None:
        self.schedule, self.loop, self.extent, self.body = schedule, loop, loops.extents[loop], body
        self.halves: list[int] = halved_lanes(loops, schedule.lanes)

    def vectors(
        self, step: int, lanes: int, part: LoopPart, *notes: str, is_masked: bool = False, is_backwards: bool = False
    ) -> For:
        if is_masked and self.schedule.keeps_fp_flags_exact:
            notes = (*notes, "masked lanes set no floating-point flags")
        direction = Direction.BACKWARDS if is_backwards else Direction.FORWARDS
        kind = LoopKind.VECTOR if lanes > 1 else LoopKind.SERIAL
        notes = (f"{self.schedule.vector_bytes}-byte vectors", *notes) if lanes > 1 else notes
        return For(
            self.loop, kind, self.extent, self.body, step, lanes, part, direction, is_masked and lanes > 1, notes
        )

    def remainder(self, *, is_hoisted: bool = False) -> list[For]:
        """What is behind the last full step."""
        lanes, how = self.schedule.lanes, self.schedule.remainder
        if is_hoisted or how is Remainder.HOISTED:
            full = [self.vectors(lanes, lanes, LoopPart.REST)] if self.schedule.unroll > 1 else []
            return [*full, self.vectors(lanes, lanes, LoopPart.REST, "one mask for all rows", is_masked=True)]
        if how is Remainder.HALVED:
            whole = [lanes] if self.schedule.unroll > 1 else []
            return [self.vectors(one, one, LoopPart.REST) for one in (*whole, *self.halves)]
        return [self.vectors(lanes, lanes, LoopPart.REST, is_masked=True)]


def lane_loops(loops: Loops, schedule: NestSchedule, loop: int, body: Body, *, accumulates: bool = False) -> Body:
    """The lane loop of rows, or of stores: with peeled iterations where an output is to be aligned."""
    own, wide, lanes = _LaneLoop(loops, schedule, loop, body), schedule.step_lanes, schedule.lanes
    short = ("short loop",) if schedule.is_short else ()
    if loops.directions.get(loop) == -1:
        rest = own.vectors(lanes, lanes, LoopPart.REST, is_masked=True, is_backwards=True)
        return rest, own.vectors(wide, lanes, LoopPart.STEPS, is_backwards=True)
    if accumulates:
        return (
            own.vectors(wide, lanes, LoopPart.STEPS, *short),
            own.vectors(wide, lanes, LoopPart.REST, is_masked=True),
        )
    doubled = [own.vectors(2 * wide, lanes, LoopPart.STEPS)] if schedule.doubles_steps else []
    notes = (*short, *(("at least one step",) if schedule.fills_step else ()))
    full = [*doubled, own.vectors(wide, lanes, LoopPart.STEPS, *notes), *own.remainder()]
    if schedule.aligned is None:
        return tuple(full)
    peeled = own.vectors(lanes, lanes, LoopPart.PEELED, is_masked=schedule.remainder is not Remainder.HALVED)
    array = loops.targets[schedule.aligned].output
    vectors = MIN_PEELED_VECTORS if schedule.peels_long else 0
    guard = Misaligned(array, vectors, schedule.stream_bytes if schedule.streamed else 0)
    return (If(guard, (peeled,)), *full)


def reduced_row_loops(loops: Loops, schedule: NestSchedule, phase: PhaseSchedule, loop: int, body: Body) -> Body:
    """The lane loop of a row that is reduced: full steps, in chunks where sums have parts, and the remainder."""
    extent = loops.extents[loop]
    own, wide, lanes = _LaneLoop(loops, schedule, loop, body), schedule.step_lanes, schedule.lanes
    notes = ("at least one step",) if schedule.fills_step else ()
    short = ("short loop",) if schedule.is_short else ()
    steps: Statement = own.vectors(wide, lanes, LoopPart.STEPS, *notes, *short)
    if phase.blocked:
        steps = For(None, LoopKind.SERIAL, extent, (steps,), ADDS * wide, notes=(CHUNKED,))
    if phase.recent_store is None:
        return (steps, *own.remainder(is_hoisted=True))
    halves = [own.vectors(half, half, LoopPart.REST) for half in own.halves]
    where = "the first one" if phase.recent_store is RecentStore.FIRST else "the last one"
    return (steps, *halves, own.vectors(1, 1, LoopPart.STORED, where))
