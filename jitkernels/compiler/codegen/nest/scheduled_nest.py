"""A loop nest with its schedule, and the function that is emitted for it: what all emitters of its loops share."""

from dataclasses import dataclass

from jitkernels.compiler.codegen.core.ir_builder import FunctionBuilder
from jitkernels.compiler.codegen.nest.value_emitter import ValueEmitter
from jitkernels.compiler.ir.strided_array import StridedArray
from jitkernels.compiler.schedule.nest.loop_order import Loops
from jitkernels.compiler.schedule.nest.nest_schedule import NestSchedule


@dataclass
class ScheduledNest:
    """The loops of a nest, how they run, and the function for them."""

    loops: Loops
    schedule: NestSchedule
    function: FunctionBuilder
    name: str

    def __post_init__(self) -> None:
        loops, schedule = self.loops, self.schedule
        self.nest, self.targets, self.inside = loops.nest, loops.targets, loops.inside
        self.extents, self.directions = loops.extents, loops.directions
        self.order, self.lane_loop, self.parallel_loop = [*schedule.order], schedule.lane_loop, schedule.parallel_loop
        self.lanes, self.step_lanes = schedule.lanes, schedule.step_lanes
        self.values = ValueEmitter(
            self.function,
            self.lane_loop,
            loops.values.arrays,
            loops.inside,
            keeps_fp_flags_exact=schedule.keeps_fp_flags_exact,
        )

    @property
    def vector_loop(self) -> int:
        """The lane loop, where there is one."""
        assert self.lane_loop is not None, "a vectorized nest"
        return self.lane_loop

    @property
    def streamed(self) -> list[StridedArray]:
        """The arrays that are stored by streaming stores."""
        return [self.targets[i].output for i in self.schedule.streamed]
