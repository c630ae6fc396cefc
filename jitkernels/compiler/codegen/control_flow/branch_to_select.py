"""If-conversion: compute both sides of a cheap branch and select, instead of a jump that is mispredicted."""

from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.regions import regions_of, walk_nodes

QUICK = frozenset({
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or", "logical_not",
    "bitwise_and", "bitwise_or", "bitwise_xor", "add", "subtract", "cast", "branch",
})  # fmt: skip
"""Operations of one or two cycles that are safe to speculate: they neither trap nor read memory."""
COSTLESS_OPERATIONS = frozenset({"parameter", "constant", "extent", "item"})
"""Operations that emit no instructions, and do not count."""
MAX_SELECT_NODES = 8
"""Nodes of both sides of a branch that becomes a select: a mispredicted branch costs about as many operations."""


def is_speculatable(branch: Node) -> bool:
    """Return whether both sides of a branch yield only scalar bools and are cheap enough to compute both."""
    regions = regions_of(branch)
    if not all(output.dtype == "bool" and not output.ndim for region in regions for output in region.outputs):
        return False
    nodes = [node for region in regions for node in walk_nodes(region) if node.operation not in COSTLESS_OPERATIONS]
    if len(nodes) > MAX_SELECT_NODES or any(region.checks for region in regions):
        return False
    return all(node.operation in QUICK and not _has_checks(node) for node in nodes)


def _has_checks(node: Node) -> bool:
    return any(region.checks for region in regions_of(node))
