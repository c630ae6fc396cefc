"""Lanes of the vectors that a remainder is halved into."""

from jitkernels.compiler.schedule.nest.loop_order import Loops

WIDENED_DTYPES = frozenset({"float16", "bfloat16", "float32", "complex64"})
"""Dtypes of which two lanes are half of the narrowest register: x86 computes the other half too, ``0 / 0`` for one."""


def halved_lanes(loops: Loops, lanes: int) -> list[int]:
    """The lanes of the vectors behind the full ones, in order; the last ones are repeated where a power is missing."""
    halves = [lanes >> shift for shift in range(1, lanes.bit_length())]
    dtypes = {node.dtype for region in loops.nest.regions for node in (*region.nodes, *region.leaves)}
    return [half for half in halves if half != 2 or not dtypes & WIDENED_DTYPES]
