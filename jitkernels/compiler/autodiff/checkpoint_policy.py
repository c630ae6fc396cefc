"""What the way back through a region needs of the way there, and which of it is kept or computed once more.

Kept are numbers that were read from arrays, results of loops, products and reductions, and what a loop carries: each
takes as much memory as the time to compute it. What is elementwise is computed again from these; of numbers, what takes
long is kept as well.
"""

from collections.abc import Iterable, Mapping

from jitkernels.graph import cones
from jitkernels.graph.flows import is_direct
from jitkernels.graph.ir import Node
from jitkernels.graph.operations import OPERATIONS

COSTLY = 6.0
"""Additions of a number that is rather kept than computed again."""
AGAIN = frozenset({"cast", "bounded", "overflows", "reshape", "iota"})


class Needs:
    """What some nodes need of others, and what of that has to be `kept`, by ids.

    `forward` are the nodes of the way there by their ids, `free` those that are there anyway.
    """

    def __init__(self, forward: Mapping[int, Node], free: Iterable[Node], *, keeps_elements: bool) -> None:
        self.forward, self.keeps_elements = forward, keeps_elements
        self.free = {id(one) for one in free}
        self.kept: dict[int, Node] = {}
        self._seen: dict[int, Node] = {}

    def need(self, roots: Iterable[Node]) -> None:
        """Look at all that nodes are made of."""
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if id(node) in self._seen:
                continue
            self._seen[id(node)] = node
            if id(node) in self.free:
                continue
            if id(node) not in self.forward or self._is_again(node):
                waiting.extend(node.inputs)
            else:
                self.kept[id(node)] = node

    def _is_again(self, node: Node) -> bool:
        """Whether a node of the way there is computed again from what it is made of."""
        if not node.inputs:
            return node.operation != "parameter"
        if node.operation == "gather" and is_direct(node):
            return not self.keeps_elements and id(node.inputs[0]) in self.free
        if node.operation == "gather":
            return id(node.inputs[0]) in self.free
        if node.operation == "view":
            source = node.inputs[0]
            return id(source) in self.free or node.ndim >= source.ndim
        if node.operation in AGAIN:
            return True
        is_elementwise = OPERATIONS[node.operation].is_elementwise
        return is_elementwise and (bool(node.ndim) or cones.own_cost(node) <= COSTLY)
