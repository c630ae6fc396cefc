"""Sums of several arrays that nests behind one another would compute again, such as the residuals of a network.

Each nest would read all of their arrays; once one of them stores the sum, later ones read that alone. Nests of the same
loops between which nothing else runs are one nest, which computes the sum once anyway.
"""

from collections.abc import Iterable, Sequence

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.schedule.fusion_region import FusionRegion, is_inline

MIN_ARRAYS = 3
"""Least arrays of the size of a value for which it is stored: two cost as much as storing and loading it."""


def repeated_sums(order: Iterable[Node], regions: Sequence[FusionRegion]) -> set[Node]:
    """Elementwise nodes of many arrays that nests with other steps between them share: the last ones that they do."""
    steps = _steps_before(order)
    before = [max((steps.get(leaf, 0) for leaf in region.leaves), default=0) for region in regions]
    owners: dict[Node, set[int]] = {}
    read: dict[Node, frozenset[Node]] = {}
    for number, region in enumerate(regions):
        for node in region.nodes:
            owners.setdefault(node, set()).add(number)
            if node not in read:
                read[node] = frozenset().union(*(read.get(one, _array(one)) for one in node.inputs))
    result: set[Node] = set()
    for region in regions:
        for node in region.nodes:
            for operand in node.inputs:
                if operand not in owners or not OPERATIONS[operand.operation].is_elementwise:
                    continue
                is_last = node is region.root or owners[node] != owners[operand]
                if not is_last or len({before[owner] for owner in owners[operand]}) < 2:
                    continue
                if sum(rank(array) >= rank(operand) > 0 for array in read[operand]) >= MIN_ARRAYS:
                    result.add(operand)
    return result


def _array(node: Node) -> frozenset[Node]:
    return frozenset([node]) if node.ndim else frozenset()


def _steps_before(order: Iterable[Node]) -> dict[Node, int]:
    """The most steps other than loop nests on a path to each node."""
    steps: dict[Node, int] = {}
    for node in order:
        own = 0 if is_inline(node) or not node.inputs else 1
        steps[node] = own + max((steps[operand] for operand in node.inputs), default=0)
    return steps


def rank(node: Node) -> int:
    """The number of dimensions along which a node has several elements."""
    return sum(not symbolic_dims.same(extent, 1) for extent in node.shape)
