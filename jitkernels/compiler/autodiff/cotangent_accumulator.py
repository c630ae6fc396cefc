"""Cotangents while they are added up: the sum for each node, and where a reverse pass is."""

from collections.abc import Callable, Iterable
from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.construct import elementwise
from jitkernels.graph.extents import Extent, Number, Scope, same_shape
from jitkernels.graph.ir import Node, frozen


class Around:
    """Where derivatives are made.

    `known` gives ints as extents, `room` the length of tapes of loops of unknown length; `rounds` is how many the loops
    around have at most, `own_rounds` how many the innermost. `in_place`: whether arrays are changed where they lie, as
    in all regions; `is_open`: whether this is in a loop or branch that is derived from. Then `opened` are tapes, and
    positions on them, that loops write to and all loops around carry, each as what it is before and after; `instead`
    are, by the ids of loops and branches, the results of those that keep what the way back needs, and `made` all nodes
    of these.
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
        """The same in a region that has so many rounds."""
        total = None if rounds is None or self.rounds is None else self.rounds * rounds
        return Around(self.scope, self.known, self.room, (total, rounds), in_place=True, is_open=True)

    def keep(self, node: Node, results: list[Node]) -> None:
        """Let a loop or branch be another one, with the same results and more."""
        self.instead[id(node)] = results
        self.made += [node, results[0].inputs[0], *results]

    def replaced(self, nodes: Iterable[Node]) -> dict[int, Node]:
        """By the ids of results of loops and branches among nodes, what they are when these keep what is needed."""
        return {
            id(one): self.instead[id(one.inputs[0])][one.options["index"]]
            for one in nodes
            if one.operation == "item" and id(one.inputs[0]) in self.instead
        }


class Totals:
    """The cotangents of nodes. `in_place`: what flows to few elements is added in the memory of the sum."""

    def __init__(self, *, in_place: bool) -> None:
        self.in_place = in_place
        self._dense: dict[int, Node] = {}
        self._few: dict[int, list[Node]] = {}
        self._owners: dict[int, int] = {}
        self._alive: list[Node] = []

    def add(self, node: Node, part: Node) -> None:
        """Add what flows to a node."""
        self._alive += [node, part]
        if node.ndim and _is_deposit(part) and (self.in_place or part.operation == "scatter"):
            self._few.setdefault(id(node), []).append(part)
            return
        before = self._dense.get(id(node))
        if before is None and self._owners.setdefault(id(part), id(node)) != id(node) and part.ndim:
            part = construct.copy(part) if self.in_place else part  # one of both may be written over
        self.put(node, part if before is None else elementwise("add", before, part))

    def put(self, node: Node, total: Node) -> None:
        """Let a sum be another one, in which it is contained."""
        self._alive += [node, total]
        self._dense[id(node)] = total

    def dense(self, node: Node) -> Node | None:
        """The sum as far as it is an array, without what flows to few elements."""
        return self._dense.get(id(node))

    def has(self, node: Node) -> bool:
        """Whether anything flows to a node."""
        return id(node) in self._dense or id(node) in self._few

    def of(self, node: Node) -> Node | None:
        """The sum; None if nothing flows there."""
        few = self._few.pop(id(node), [])
        for one in sorted(few, key=lambda part: not _fills(self._dense.get(id(node)), part)):
            before = self._dense.get(id(node))
            self.put(node, one if before is None else _deposited(before, one))
        return self._dense.get(id(node))


def _is_deposit(part: Node) -> bool:
    """Whether a part is zero but for some elements, or for a slice."""
    if part.operation == "scatter":
        adds = part.options.get("adds") or all(not one.ndim for one in part.inputs[1:])
        return bool(adds) and is_zeros(part.inputs[0])
    return part.operation == "update" and is_zeros(part.inputs[0])


def is_zeros(node: Node) -> bool:
    """Whether a node is made as zeros."""
    while node.operation == "view":
        node = node.inputs[0]
    return node.operation == "constant" and node.options["value"] == 0


def _fills(total: Node | None, part: Node) -> bool:
    """Whether a part is all that there is in a slice of the sum, which is zero there."""
    if (
        total is None
        or total.operation != "update"
        or part.operation != "update"
        or not is_zeros(total.inputs[1])
    ):
        return False
    return frozen(total.options["map"]) == frozen(part.options["map"]) and same_shape(
        total.options["extents"], part.options["extents"]
    )


def _deposited(total: Node, part: Node) -> Node:
    _, value, *indices = part.inputs
    options: dict[str, Any] = dict(part.options)
    if _fills(total, part):
        return part.with_inputs([total.inputs[0], value])
    if options.get("adds"):
        return part.with_inputs([total, value, *indices])
    if part.operation == "scatter":
        here = Node("gather", (total, *indices), part.dtype, value.shape, options)
    else:
        here = construct.view(total, options["map"], options["extents"])
    return Node("scatter" if indices else "update", (total, elementwise("add", here, value), *indices),
                part.dtype, part.shape, options)  # fmt: skip
