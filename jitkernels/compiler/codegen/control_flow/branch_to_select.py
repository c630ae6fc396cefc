"""Conditions that take less than a jump that is not foreseen: both sides are computed, and one is chosen."""

from jitkernels.graph.ir import Node
from jitkernels.graph.regions import nodes_within, regions_of

QUICK = frozenset({
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "add", "subtract", "cast", "branch",
})  # fmt: skip
"""What takes a step of the processor or two, and can be computed in vain: nothing traps, nothing is read."""
FREE = frozenset({"parameter", "constant", "extent", "item"})
MOST_NODES = 8


def is_quick(branch: Node) -> bool:
    """Whether a branch only chooses between conditions that are quick to compute."""
    regions = regions_of(branch)
    if not all(one.dtype == "bool" and not one.ndim for region in regions for one in region.outputs):
        return False
    nodes = [node for region in regions for node in nodes_within(region) if node.operation not in FREE]
    if len(nodes) > MOST_NODES or any(region.checks for region in regions):
        return False
    return all(node.operation in QUICK and not _has_checks(node) for node in nodes)


def _has_checks(node: Node) -> bool:
    return any(region.checks for region in regions_of(node))
