"""Checkpoint policy: which forward values the backward pass stores on tapes and which it recomputes.

It stores scalars read from arrays, results of loops, products and reductions, and loop-carried values: each takes about
as much memory as the time to compute it. It recomputes elementwise nodes from these, but for costly scalars.
"""

from collections.abc import Iterable, Mapping

from jitkernels.compiler.ir import op_cost
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.region_memory import is_direct

MAX_RECOMPUTED_COST = 6.0
"""In additions: a scalar of higher cost is stored rather than recomputed."""
ALWAYS_RECOMPUTED = frozenset({"cast", "bounded", "overflows", "reshape", "iota"})


class CheckpointPolicy:
    """The forward values that some nodes need, and which of them have to be stored: `kept`, by ids.

    `forward`: the nodes of the forward pass by their ids; `free`: those available without a tape.
    """

    def __init__(self, forward: Mapping[int, Node], free: Iterable[Node], *, keeps_elements: bool) -> None:
        self.forward, self.keeps_elements = forward, keeps_elements
        self.free = {id(node) for node in free}
        self.kept: dict[int, Node] = {}
        self._seen: dict[int, Node] = {}

    def require(self, roots: Iterable[Node]) -> None:
        """Visit all that the backward nodes `roots` depend on."""
        worklist = list(roots)
        while worklist:
            node = worklist.pop()
            if id(node) in self._seen:
                continue
            self._seen[id(node)] = node
            if id(node) in self.free:
                continue
            if id(node) not in self.forward or self._is_recomputed(node):
                worklist.extend(node.inputs)
            else:
                self.kept[id(node)] = node

    def _is_recomputed(self, node: Node) -> bool:
        """Whether the backward pass recomputes a forward node from its operands."""
        if not node.inputs:
            return node.operation != "parameter"
        if node.operation == "gather" and is_direct(node):
            return not self.keeps_elements and id(node.inputs[0]) in self.free
        if node.operation == "gather":
            return id(node.inputs[0]) in self.free
        if node.operation == "view":
            source = node.inputs[0]
            return id(source) in self.free or node.ndim >= source.ndim
        if node.operation in ALWAYS_RECOMPUTED:
            return True
        is_elementwise = OPERATIONS[node.operation].is_elementwise
        return is_elementwise and (bool(node.ndim) or op_cost.own_cost(node) <= MAX_RECOMPUTED_COST)
