"""Accumulation of cotangents: the sum for each node, and the context in which a reverse pass runs."""

from collections.abc import Callable, Iterable
from typing import Any

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node, frozen
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, Scope, same_shape


class Around:
    """The context in which derivatives are built.

    `known` maps int nodes to extents; `room` gives the length of tapes of loops of unknown trip count. `rounds` bounds
    the trip count of all enclosing loops together, `own_rounds` that of the innermost one. `in_place`: updates reuse
    memory, as in all regions. `is_open`: this is inside a differentiated loop or branch. Then `opened` lists the tapes
    and positions that inner loops write and all enclosing loops carry, as pairs (before, after); `instead` maps the ids
    of loops and branches to the results of their tape-writing replacements, and `made` lists all nodes of these.
    """

    def __init__(
        self,
        scope: Scope,
        known: Callable[[Node], Number | None],
        room: Callable[[], Extent],
        rounds: tuple[Number | None, Number | None] = (1, 1),
        *,
        in_place: bool = False,
        is_open: bool = False,
    ) -> None:
        self.scope, self.known, self.room, self.in_place, self.is_open = scope, known, room, in_place, is_open
        self.rounds, self.own_rounds = rounds
        self.opened: list[tuple[Node, Node]] = []
        self.instead: dict[int, list[Node]] = {}
        self.made: list[Node] = []

    def inside(self, rounds: Number | None) -> "Around":
        """The context inside a region with a trip count of at most `rounds`."""
        total = None if rounds is None or self.rounds is None else self.rounds * rounds
        return Around(self.scope, self.known, self.room, (total, rounds), in_place=True, is_open=True)

    def keep(self, node: Node, results: list[Node]) -> None:
        """Replace a loop or branch by one with the same results and more."""
        self.instead[id(node)] = results
        self.made += [node, results[0].inputs[0], *results]

    def replaced(self, nodes: Iterable[Node]) -> dict[int, Node]:
        """By the ids of results of loops and branches among `nodes`: those results of the tape-writing replacements."""
        return {
            id(node): self.instead[id(node.inputs[0])][node.options["index"]]
            for node in nodes
            if node.operation == "item" and id(node.inputs[0]) in self.instead
        }


class CotangentAccumulator:
    """The cotangents of nodes. `in_place`: sparse contributions are added in the memory of the sum."""

    def __init__(self, *, in_place: bool) -> None:
        self.in_place = in_place
        self._dense: dict[int, Node] = {}
        self._few: dict[int, list[Node]] = {}
        self._owners: dict[int, int] = {}
        self._alive: list[Node] = []

    def add(self, node: Node, part: Node) -> None:
        """Add a contribution `part` to the cotangent of a node."""
        self._alive += [node, part]
        if node.ndim and _is_sparse_update(part) and (self.in_place or part.operation == "scatter"):
            self._few.setdefault(id(node), []).append(part)
            return
        previous = self._dense.get(id(node))
        if previous is None and self._owners.setdefault(id(part), id(node)) != id(node) and part.ndim:
            part = builder.copy(part) if self.in_place else part  # a copy: one of both sums may be updated in place
        self.put(node, part if previous is None else elementwise("add", previous, part))

    def put(self, node: Node, total: Node) -> None:
        """Set the sum of a node to `total`, which contains the sum so far."""
        self._alive += [node, total]
        self._dense[id(node)] = total

    def dense(self, node: Node) -> Node | None:
        """The sum of the dense contributions, without the sparse ones."""
        return self._dense.get(id(node))

    def has(self, node: Node) -> bool:
        """Whether a node has a cotangent."""
        return id(node) in self._dense or id(node) in self._few

    def of(self, node: Node) -> Node | None:
        """The sum of all contributions; None without any."""
        updates = self._few.pop(id(node), [])
        for update in sorted(updates, key=lambda part: not _fills(self._dense.get(id(node)), part)):
            previous = self._dense.get(id(node))
            self.put(node, update if previous is None else _add_sparse_update(previous, update))
        return self._dense.get(id(node))


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
    return node.operation == "constant" and node.options["value"] == 0


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
    return Node("scatter" if indices else "update", (total, elementwise("add", current, value), *indices),
                part.dtype, part.shape, options)  # fmt: skip
