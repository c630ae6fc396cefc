"""How much work loops are, about, in additions: whether other Python threads may run meanwhile hangs on it.

Rounds are known where limits are extents, and where derivatives say so. Others are taken for as many as the loop around
has, or for `SOME`.
"""

from jitkernels.graph import cones, extents, limits
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.flows import is_flow
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.regions import regions_of

SOME = 100


def work_of(flow: Node, around: Number = 1) -> Number:
    """The work of a loop or branch; `around` are the rounds of the loop around it."""
    if flow.operation == "branch":
        return sum((_of_region(region, around) for region in regions_of(flow)), 0)
    rounds = rounds_of(flow, around)
    return rounds * sum((_of_region(region, rounds) for region in regions_of(flow)), 0)


def _of_region(region: Graph, rounds: Number) -> Number:
    total: Number = 1
    for node in region:
        if is_flow(node):
            total = total + work_of(node, rounds)
        elif OPERATIONS[node.operation].is_elementwise or node.operation in ("reduce", "matmul"):
            shape = node.inputs[0].shape if node.operation == "reduce" else node.shape
            if node.operation == "matmul":
                shape = (*shape, node.inputs[0].shape[-1])
            steps = limits.limit(extents.product(shape), is_upper=True)
            total = total + round(min(cones.own_cost(node), 15.0) + 1) * (SOME if steps is None else steps)
    return total


def rounds_of(loop: Node, around: Number = SOME) -> Number:
    """How many rounds a loop has, about."""
    most: Number | None = loop.options.get("rounds")
    if most is not None:
        return most
    if loop.options["counts"]:
        begin, end, step = (_limit(node) for node in loop.inputs[:3])
        if begin is not None and end is not None and type(step) is int:
            rounds = limits.limit(end - begin if step > 0 else begin - end, is_upper=True)
            if rounds is None:
                return SOME
            if isinstance(rounds, Extent) or rounds > 0:
                return rounds
            return 1
    return around if isinstance(around, Extent) or around > 1 else SOME


def _limit(node: Node) -> Number | None:
    if node.operation == "constant":
        return int(node.options["value"])
    return node.options["extent"] if node.operation == "extent" else None
