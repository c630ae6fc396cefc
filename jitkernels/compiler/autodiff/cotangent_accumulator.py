"""Accumulation of cotangents: the sum for each node, and the context in which derivatives are built."""

from collections.abc import Callable, Sequence
from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Graph, Node, frozen, has_value, sorted_nodes
from jitkernels.compiler.ir.region_memory import unsupported
from jitkernels.compiler.ir.regions import clone_region
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, Scope, same_shape


class DerivativeContext:
    """The context in which derivatives are built.

    `extent_of` maps int nodes to extents; `tape_capacity` gives the length of tapes of loops of unknown trip count.
    `max_trip_count` bounds the trip count of all enclosing loops together, `own_trip_count` that of the innermost one.
    `in_place`: updates reuse memory, as in all regions. `is_nested`: this is inside a differentiated loop or branch.
    Then `tapes` lists the tapes and positions that inner loops write and all enclosing loops carry, as pairs (before,
    after); `rebuilt` maps loops and branches to the results of their tape-writing replacements, and `new_nodes` lists
    all nodes of these.
    """

    def __init__(
        self,
        scope: Scope,
        extent_of: Callable[[Node], Number | None],
        tape_capacity: Callable[[], Extent],
        trip_counts: tuple[Number | None, Number | None] = (1, 1),
        *,
        in_place: bool = False,
        is_nested: bool = False,
    ) -> None:
        self.scope, self.extent_of, self.tape_capacity = scope, extent_of, tape_capacity
        self.in_place, self.is_nested = in_place, is_nested
        self.max_trip_count, self.own_trip_count = trip_counts
        self.tapes: list[tuple[Node, Node]] = []
        self.rebuilt: dict[Node, list[Node]] = {}
        self.new_nodes: list[Node] = []

    def inside(self, trip_count: Number | None) -> "DerivativeContext":
        """The context inside a region that runs at most `trip_count` times."""
        total = None if trip_count is None or self.max_trip_count is None else self.max_trip_count * trip_count
        return DerivativeContext(
            self.scope, self.extent_of, self.tape_capacity, (total, trip_count), in_place=True, is_nested=True
        )

    def replace(self, node: Node, results: list[Node]) -> None:
        """Replace a loop or branch by one with the same results and more."""
        self.rebuilt[node] = results
        self.new_nodes += [node, results[0].inputs[0], *results]

    def extended_region(self, region: Graph, parameters: Sequence[Node], outputs: Sequence[Node]) -> Graph:
        """A region rebuilt with these parameters and with more outputs, which reads the rebuilt loops and branches."""
        roots = sorted_nodes([*region.roots, *outputs])
        replaced = {
            node: self.rebuilt[node.inputs[0]][node.options["index"]]
            for node in roots
            if node.operation == "item" and node.inputs[0] in self.rebuilt
        }
        return clone_region(parameters, [*region.outputs, *outputs], region.checks, replaced)


def require_supported(region: Graph, what: str) -> None:
    """Raise UnsupportedError where a region has an operation without code. `what`: the region in the message."""
    operation = unsupported(region)
    if operation:
        raise UnsupportedError(f"{what} would contain {operation}")


class CotangentAccumulator:
    """The cotangents of nodes. `in_place`: sparse contributions are added in the memory of the sum."""

    def __init__(self, *, in_place: bool) -> None:
        self.in_place = in_place
        self._dense: dict[Node, Node] = {}
        self._sparse: dict[Node, list[Node]] = {}
        self._owners: dict[Node, Node] = {}

    def add(self, node: Node, part: Node) -> None:
        """Add a contribution `part` to the cotangent of a node."""
        if node.ndim and _is_sparse_update(part) and (self.in_place or part.operation == "scatter"):
            self._sparse.setdefault(node, []).append(part)
            return
        previous = self._dense.get(node)
        if previous is None and self._owners.setdefault(part, node) is not node and part.ndim:
            part = builder.copy(part) if self.in_place else part  # a copy: one of both sums may be updated in place
        self.put(node, part if previous is None else elementwise("add", previous, part))

    def put(self, node: Node, total: Node) -> None:
        """Set the sum of a node to `total`, which contains the sum so far."""
        self._dense[node] = total

    def dense(self, node: Node) -> Node | None:
        """The sum of the dense contributions, without the sparse ones."""
        return self._dense.get(node)

    def has(self, node: Node) -> bool:
        """Whether a node has a cotangent."""
        return node in self._dense or node in self._sparse

    def of(self, node: Node) -> Node | None:
        """The sum of all contributions; None without any."""
        updates = self._sparse.pop(node, [])
        for update in sorted(updates, key=lambda part: not _fills(self._dense.get(node), part)):
            previous = self._dense.get(node)
            self.put(node, update if previous is None else _add_sparse_update(previous, update))
        return self._dense.get(node)

    def of_or_zeros(self, node: Node) -> Node:
        """The sum of all contributions; zeros without any."""
        return self.of(node) or builder.zeros(node.dtype, node.shape)


def _is_sparse_update(part: Node) -> bool:
    """Whether a contribution is zero outside some elements or a slice."""
    if part.operation == "scatter":
        adds = part.options.get("adds") or all(not operand.ndim for operand in part.inputs[1:])
        return bool(adds) and is_zeros(part.inputs[0])
    return part.operation == "update" and is_zeros(part.inputs[0])


def is_zeros(node: Node) -> bool:
    """Whether a node is built as an array of zeros."""
    while node.operation == "view":
        node = node.inputs[0]
    return has_value(node, 0)


def _fills(total: Node | None, part: Node) -> bool:
    """Whether a contribution fills a slice of the sum that is zero so far."""
    if total is None or total.operation != "update" or part.operation != "update" or not is_zeros(total.inputs[1]):
        return False
    return frozen(total.options["map"]) == frozen(part.options["map"]) and same_shape(
        total.options["extents"], part.options["extents"]
    )


def _add_sparse_update(total: Node, part: Node) -> Node:
    _, value, *indices = part.inputs
    options: dict[str, Any] = dict(part.options)
    if _fills(total, part):
        return part.with_inputs([total.inputs[0], value])
    if options.get("adds"):
        return part.with_inputs([total, value, *indices])
    if part.operation == "scatter":
        current = Node("gather", (total, *indices), part.dtype, value.shape, options)
    else:
        current = builder.view(total, options["map"], options["extents"])
    operands = (total, elementwise("add", current, value), *indices)
    return Node("scatter" if indices else "update", operands, part.dtype, part.shape, options)
