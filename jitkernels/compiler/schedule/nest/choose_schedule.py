"""The one place that chooses the schedule of a loop nest, before any of its code is generated.

Heuristics or the tuner choose the first fields (`Loops.chosen`); the rules here derive what follows from these, from
the loops, from the traced sizes and from facts of the target. Rules may add guards: code is specialized for the sizes
that these admit.
"""

from dataclasses import replace

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.schedule.nest import phase_rules, store_rules
from jitkernels.compiler.schedule.nest.loop_order import COMPUTE_BOUND_COST, Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule, Remainder
from jitkernels.compiler.schedule.nest.row_packing import packings
from jitkernels.compiler.schedule.nest.serpentine_rule import serpentine_words
from jitkernels.compiler.schedule.nest.trip_bounds import least_steps
from jitkernels.core import cpu_target


def choose_schedule(own: Loops) -> NestSchedule:
    """The schedule of a nest."""
    packed, packs_all = packings(own)  # first: the other rules read the guards of these
    streamed = store_rules.streamed_targets(own)
    aligned = store_rules.aligned_target(own, streamed)
    doubles = phase_rules.doubles_steps(own)
    return replace(
        own.chosen,
        order=tuple(own.order),
        lane_loop=own.lane_loop,
        parallel_loop=own.parallel_loop,
        gathered_run=own.gathered_run,
        lanes=own.lanes,
        unroll=own.step_lanes // own.lanes,
        is_short=own.short_lanes > 0,
        doubles_steps=doubles,
        fills_step=_fills_step(own),
        remainder=_remainder(own),
        aligned=aligned,
        peels_long=store_rules.aligning_pays(own, aligned),
        streamed=streamed,
        prefetches_stores=store_rules.prefetches_stores(own),
        serpentine=serpentine_words(own, streamed),
        packed=packed,
        packs_all=packs_all,
        in_blocks=phase_rules.is_in_blocks(own),
        phases=phase_rules.phase_schedules(own, streams=bool(streamed), doubles=doubles),
    )


def _fills_step(own: Loops) -> bool:
    """Whether an unrolled iteration is never empty: in a loop inside of rows, which runs whole."""
    loop = own.lane_loop
    if loop is None or not own.order or loop in own.order:
        return False
    return least_steps(own.extents[loop]) >= own.step_lanes


def _remainder(own: Loops) -> Remainder:
    """How the remainder of a row runs: in rows that are reduced, the first iteration is the same in all of them.

    Cheap loops have no masks where these take long.
    """
    if bool(own.order) and own.reduces:
        return Remainder.HOISTED
    if own.chosen.remainder is Remainder.MASKED and own.nest.cost < COMPUTE_BOUND_COST and _may_halve(own):
        return Remainder.HALVED
    return own.chosen.remainder if own.lane_loop != own.parallel_loop else Remainder.MASKED


def _may_halve(own: Loops) -> bool:
    """Whether stores have no fast masks, and any number of lanes can be computed by itself."""
    stores = [target.output.dtype for target in own.targets if target.array is not None]
    slow = any(not cpu_target.target().stores_masked(NUMBERS[dtype].size) for dtype in stores)
    fixed = own.scanned or own.directions or own.short_lanes or own.reduces or own.gathered_run is not None
    return slow and not fixed
