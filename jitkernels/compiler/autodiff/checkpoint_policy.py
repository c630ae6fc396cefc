"""Checkpoint policy: which forward values the backward pass stores on tapes and which it recomputes.

It stores scalars read from arrays, results of loops, products and reductions, and loop-carried values: each takes about
as much memory as the time to compute it. It recomputes elementwise nodes from these, but for costly scalars.
"""

from collections.abc import Container, Iterable

from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS, own_cost
from jitkernels.compiler.ir.region_memory import is_direct

MAX_RECOMPUTED_SCALAR_COST = 6.0
"""In additions: a scalar of higher cost is stored rather than recomputed."""
ALWAYS_RECOMPUTED = frozenset({"cast", "bounded", "overflows", "reshape", "iota"})


class CheckpointPolicy:
    """The forward values that some nodes need, and which of them have to be `stored`.

    `forward`: the nodes of the forward pass; `free`: those available without a tape.
    """

    def __init__(self, forward: Container[Node], free: Iterable[Node], *, keeps_elements: bool) -> None:
        self.forward, self.keeps_elements, self.free = forward, keeps_elements, set(free)
        self.stored: dict[Node, None] = {}
        self._seen: set[Node] = set()

    def require(self, roots: Iterable[Node]) -> None:
        """Visit all that the backward nodes `roots` depend on."""
        worklist = list(roots)
        while worklist:
            node = worklist.pop()
            if node in self._seen:
                continue
            self._seen.add(node)
            if node in self.free:
                continue
            if node not in self.forward or self._is_recomputed(node):
                worklist.extend(node.inputs)
            else:
                self.stored[node] = None

    def _is_recomputed(self, node: Node) -> bool:
        """Whether the backward pass recomputes a forward node from its operands."""
        if not node.inputs:
            return node.operation != "parameter"
        source = node.inputs[0]
        if node.operation == "gather":
            return source in self.free and not (self.keeps_elements and is_direct(node))
        if node.operation == "view":
            return source in self.free or node.ndim >= source.ndim
        if node.operation in ALWAYS_RECOMPUTED:
            return True
        is_elementwise = OPERATIONS[node.operation].is_elementwise
        return is_elementwise and (bool(node.ndim) or own_cost(node) <= MAX_RECOMPUTED_SCALAR_COST)
