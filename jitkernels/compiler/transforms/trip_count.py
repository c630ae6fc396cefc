"""Trip counts and work of loops, in additions: an estimate that decides whether to release the GIL or use threads.

Trip counts are known where limits are extents, and from loops that derivatives make. Others are estimated as that of
the enclosing loop, or as `SOME`.
"""

from jitkernels.compiler.ir import dim_bounds, ops, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, number_of
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.region_memory import is_control_flow
from jitkernels.compiler.ir.regions import regions_of
from jitkernels.compiler.ir.symbolic_dims import Extent, Number

SOME = 100


def work_of(flow: Node, outer_trip_count: Number = 1) -> Number:
    """The work of a loop or branch; `around`: the trip count of the enclosing loop."""
    if flow.operation == "branch":
        return sum((_of_region(region, outer_trip_count) for region in regions_of(flow)), 0)
    trip_count = trip_count_of(flow, outer_trip_count)
    return trip_count * sum((_of_region(region, trip_count) for region in regions_of(flow)), 0)


def _of_region(region: Graph, trip_count: Number) -> Number:
    total: Number = 1
    for node in region:
        if is_control_flow(node):
            total = total + work_of(node, trip_count)
        elif node.operation == "kernel":
            total = total + int(node.options["function"].attr.operations())
        elif OPERATIONS[node.operation].is_elementwise or node.operation in ("reduce", "matmul"):
            shape = node.inputs[0].shape if node.operation == "reduce" else node.shape
            if node.operation == "matmul":
                shape = (*shape, node.inputs[0].shape[-1])
            steps = dim_bounds.limit(symbolic_dims.product(shape), is_upper=True)
            total = total + round(min(ops.own_cost(node), 15.0) + 1) * (SOME if steps is None else steps)
    return total


def trip_count_of(loop: Node, outer_trip_count: Number = SOME) -> Number:
    """The estimated trip count of a loop."""
    declared: Number | None = loop.options.get("rounds")
    if declared is not None:
        return declared
    if loop.options["counts"]:
        begin, end, step = map(number_of, loop.inputs[:3])
        if begin is not None and end is not None and type(step) is int:
            trip_count = dim_bounds.limit(end - begin if step > 0 else begin - end, is_upper=True)
            if trip_count is None:
                return SOME
            if isinstance(trip_count, Extent) or trip_count > 0:
                return trip_count
            return 1
    return outer_trip_count if isinstance(outer_trip_count, Extent) or outer_trip_count > 1 else SOME
