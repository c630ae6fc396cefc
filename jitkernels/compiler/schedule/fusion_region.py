"""What computing one node takes: the nodes inside, each at the places of the node's loops where it is needed.

A place is an index map: for every dimension of a node where it starts and how far each step of each loop goes in it.
Loops of a root are its dimensions; a reduction inside adds loops of its own. Nothing is written to memory on the way,
so a view costs nothing, and a node that is needed in two places is computed twice.
"""

import operator
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from jitkernels.graph import extents
from jitkernels.graph.construct import IndexMap, composed
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.operations import OPERATIONS
from jitkernels.kept import kept_property

Index = tuple[Number, tuple[tuple[int, Number], ...]]
"""A place in one dimension."""
INNER = 64
"""The first loop of a reduction's own; those below are of the dimensions of a root."""
ANYWHERE = -2
"""The loop of a place that only the values of indices tell."""
INLINE = frozenset({"cast", "view", "constant", "extent", "iota", "reduce", "gather", "scan", "placed"})
"""What can be computed inside of another node, beside all that is elementwise."""
MOVING = frozenset({"view", "reduce", "gather", "placed"})
"""What may need inputs at other places than its own; all else broadcasts them."""
LARGEST = 400
"""Nodes of a cone: what a nest is made in time with, and what programs of many thousand nodes are cut into."""
MOST_INPUTS = 32
"""Arrays that a nest reads: more streams than processors follow, and more pointers than they have registers."""
MOST_PARTS = 4
"""Parts of an array that are each computed where they are needed: all the code is there for each."""
COSTLY = 7.0
"""What is not computed twice, if it can be kept."""


def is_inline(node: Node) -> bool:
    """Whether a node can be computed where it is needed, instead of being kept."""
    return node.operation in INLINE or OPERATIONS[node.operation].is_elementwise


def is_indexed(node: Node, number: int) -> bool:
    """Whether an input is picked from by numbers: nothing but memory can be."""
    return node.operation == "gather" and number == 0


def memory_picked_from(node: Node) -> Node:
    """What has to be in memory for a node that picks by numbers: its array, or what that is a view of."""
    one = node.inputs[0]
    while one.operation == "view":
        one = one.inputs[0]
    return one


def changes(node: Node) -> bool:
    """Whether a node is its first input with some elements changed, which nests write in its memory."""
    if node.operation == "scatter":
        # Of numbers that are equal the last counts: nests take them in order along one dimension.
        return adds(node) or all(one.ndim <= 1 for one in node.inputs[2:])
    return node.operation == "update"


def adds(node: Node) -> bool:
    """Whether values are added to what is where numbers place them, as by `numpy.add.at`."""
    return bool(node.options.get("adds"))


def place_written(node: Node, index_map: IndexMap) -> IndexMap:
    """Where an element of values that numbers place goes in the array."""
    axis, numbers = node.options["axis"], node.inputs[1:]
    behind = axis + numbers[0].ndim
    return (*index_map[:axis], *[(0, ((ANYWHERE, 1),))] * len(numbers), *index_map[behind:])


def place_in(node: Node, number: int, index_map: IndexMap) -> IndexMap:
    """Where an input is needed for a node that is needed at some place."""
    one, shape = node.inputs[number], node.shape
    given = one.shape
    if node.operation not in MOVING and len(shape) == len(given) and all(map(operator.is_, given, shape)):
        return index_map  # as of most nodes: what is known of a place is found by it
    if node.operation in ("gather", "placed") and number:
        axis = node.options["axis"]
        return index_map[axis : axis + one.ndim]
    if node.operation == "gather":
        return place_written(node, index_map)
    if node.operation == "view":
        return composed(node.options["map"], index_map)
    if node.operation == "reduce":
        axes = node.options["axes"]
        kept = iter(index_map)
        return tuple((0, ((INNER + axes.index(i), 1),)) if i in axes else next(kept) for i in range(one.ndim))
    missing = len(shape) - len(given)
    return tuple(
        (0, ()) if same(extent, 1) and not same(shape[missing + i], 1) else index_map[missing + i]
        for i, extent in enumerate(given)
    )


def key_of(index_map: IndexMap) -> Any:
    """Equal for equal places."""
    return tuple(
        (extents.key_of(start), tuple((loop, extents.key_of(step)) for loop, step in steps))
        for start, steps in index_map
    )


def loops_of(index_map: IndexMap) -> frozenset[int]:
    """The loops that a place depends on."""
    return frozenset(loop for _, steps in index_map for loop, _ in steps)


def identity(ndim: int) -> IndexMap:
    """A root at its own place."""
    return tuple((0, ((i, 1),)) for i in range(ndim))


@dataclass
class Cone:
    """One root and all that is computed inside of it, down to nodes that are `kept`: arrays in memory.

    `places`: by the id of a node, its places by their keys. `reductions`: those inside, with their places, each behind
    those that it needs. `rows`: the loops that these depend on. `misfits`: what has to be kept for the rest to be
    one loop nest.
    """

    root: Node
    kept: Container[int]
    largest: int = LARGEST
    places: dict[int, dict[Any, IndexMap]] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    reductions: list[Node] = field(default_factory=list)
    leaves: dict[int, Node] = field(default_factory=dict)
    rows: frozenset[int] | None = None
    misfits: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.nodes = self._inside()
        self.places[id(self.root)] = {key_of(identity(self.root.ndim)): identity(self.root.ndim)}
        inside = self.inside = frozenset(id(node) for node in self.nodes)
        for node in reversed(self.nodes):
            for key, index_map in list(self.places.get(id(node), {}).items()):
                if node.operation == "reduce" and node is not self.root:
                    self._reduction(node, index_map)
                if node.operation == "scan":
                    self._scan(node, index_map)
                if node.operation == "reduce" and any(loop >= INNER for loop in loops_of(index_map)):
                    self.misfits[id(node)] = node  # a reduction for every step of another
                for number, one in enumerate(node.inputs):
                    where = place_in(node, number, index_map)
                    found = key if where is index_map else key_of(where)
                    self.places.setdefault(id(one), {}).setdefault(found, where)
                    if id(one) not in inside:
                        self.leaves[id(one)] = one
        self.reductions = [node for node in self.nodes if node.operation == "reduce"]
        if self.root.operation == "reduce":
            everything = frozenset(range(self.root.ndim))
            if self.rows is not None and self.rows != everything:
                inner = ("reduce", "scan")
                self.misfits |= {
                    id(one): one for one in self.nodes if one.operation in inner and one is not self.root
                }
            self.rows = everything

    def _inside(self) -> list[Node]:
        """The nodes that are computed here, each behind its inputs."""
        done: dict[int, Node] = {}
        opened = 0
        stack = [(self.root, False)]
        while stack:
            node, expanded = stack.pop()
            if id(node) in done:
                continue
            if expanded:
                done[id(node)] = node
                continue
            opened += 1
            stack.append((node, True))
            for one in reversed(node.inputs):
                if id(one) in done or id(one) in self.kept or not is_inline(one):
                    continue
                if opened < self.largest or not one.inputs:
                    stack.append((one, False))
                else:
                    self.misfits[id(one)] = one
        return list(done.values())

    def _scan(self, node: Node, index_map: IndexMap) -> None:
        """A scan fits in if each row of it is the columns of a row of all the others, and is needed once."""
        axis = node.options["axis"]
        along = [steps[0][0] for _, steps in index_map[axis : axis + 1] if steps]
        others = [steps[0][0] for i, (_, steps) in enumerate(index_map) if i != axis and steps]
        rows = frozenset(others)
        whole = all(
            (not steps and same(extent, 1))
            or (
                same(start, 0)
                and len(steps) == 1
                and same(steps[0][1], 1)
                and (same(self.root.shape[steps[0][0]], extent) if steps[0][0] < INNER else i == axis)
            )
            for i, (extent, (start, steps)) in enumerate(zip(node.shape, index_map, strict=True))
        )
        loops = {*rows, *(loop for loop in along if loop < INNER)}
        apart = len(rows) != len(others) or len(self.places[id(node)]) > 1
        if self.root.operation != "reduce" and len(loops) < self.root.ndim:
            apart = True
        if not whole or apart or (self.rows is not None and self.rows != rows):
            self.misfits[id(node)] = node
        else:
            self.rows = rows

    def _reduction(self, node: Node, index_map: IndexMap) -> None:
        """A reduction fits in if it is needed once for every step of the same loops as all the others."""
        loops = [steps[0][0] for _, steps in index_map if len(steps) == 1]
        whole = all(
            same(extent, 1)
            or (
                same(start, 0)
                and len(steps) == 1
                and same(steps[0][1], 1)
                and steps[0][0] < INNER
                and same(self.root.shape[steps[0][0]], extent)
            )
            for extent, (start, steps) in zip(node.shape, index_map, strict=True)
        )
        rows = frozenset(loops)
        apart = len(rows) != len(loops) or len(self.places[id(node)]) > 1
        # One reduction of everything: what comes behind it is a loop of its own, so that threads can share both.
        alone = not rows and self.root.ndim > 0
        if not whole or apart or alone or (self.rows is not None and self.rows != rows):
            self.misfits[id(node)] = node
        else:
            self.rows = rows

    @kept_property
    def picked_from(self) -> frozenset[int]:
        """What has to be in memory, as numbers pick elements of it."""
        return frozenset(id(memory_picked_from(node)) for node in self.nodes if node.operation == "gather")

    @kept_property
    def goes_by_numbers(self) -> bool:
        """Whether numbers say what is read or written, which have to be in bounds."""
        return any(node.operation in ("gather", "placed") for node in self.nodes)

    @kept_property
    def wasteful(self) -> dict[int, Node]:
        """Nodes that take long and would be computed more than once for the same element."""
        return {id(node): node for node in self._wasteful()}

    def _wasteful(self) -> Iterator[Node]:
        costs: dict[int, float] = {}
        dimensions = frozenset(range(self.root.ndim))
        for node in self.nodes:
            costs[id(node)] = own_cost(node) + sum(
                {id(one): costs.get(id(one), 0.0) for one in node.inputs}.values()
            )
            if node is self.root or costs[id(node)] < COSTLY or node.operation in ("view", "reduce"):
                continue
            places = [*self.places[id(node)].values()]
            several = len(places) > 1 and len({loops_of(place) for place in places}) < len(places)
            if (several and not self._are_parts(places)) or any(
                self._repeated(loops_of(place), dimensions) for place in places
            ):
                yield node

    def _are_parts(self, places: list[IndexMap]) -> bool:
        """Whether a few places are of different elements: parts of an array, each of which is needed once."""
        return len(places) <= MOST_PARTS and all(
            any(map(self._is_apart, one, other)) for one, other in combinations(places, 2)
        )

    def _is_apart(self, one: Index, other: Index) -> bool:
        """Whether the places in a dimension are before or behind all others there."""
        (first, steps), (start, _) = one, other
        if len(steps) > 1 or key_of((one,))[0][1] != key_of((other,))[0][1]:
            return False
        span: Number = 1
        for loop, step in steps:
            if loop not in range(self.root.ndim) or not same(step, 1):
                return False
            span = self.root.shape[loop]
        least = [extents.least_of(apart - span) for apart in (first - start, start - first)]
        return any(one is not None and one >= 0 for one in least)

    def crowded(self, most: int) -> dict[int, Node]:
        """Nodes to be kept for the rest to read no more than so many arrays: those first that read the most."""
        if len(self.arrays) <= most:
            return {}
        found: dict[int, Node] = {}
        read: dict[int, frozenset[int]] = {key: frozenset([key]) for key in self.arrays}
        for node in self.nodes:
            below = sorted(
                {id(one): one for one in node.inputs}.values(), key=lambda one: -len(read.get(id(one), ()))
            )
            for one in below:
                own: frozenset[int] = frozenset().union(*(read.get(id(other), ()) for other in node.inputs))
                if len(own) > most and len(read[id(one)]) > 1:
                    base = one
                    while base.operation in ("view", "cast") and id(base.inputs[0]) in self.inside:
                        base = base.inputs[0]
                    found[id(base)] = base
                    read[id(base)] = read[id(one)] = frozenset([id(base)])
            read[id(node)] = frozenset().union(*(read.get(id(one), ()) for one in node.inputs))
        return found

    @kept_property
    def arrays(self) -> frozenset[int]:
        """What is read from memory at each step, by ids."""
        return frozenset(key for key, leaf in self.leaves.items() if leaf.ndim)

    def _repeated(self, loops: frozenset[int], dimensions: frozenset[int]) -> bool:
        """Whether a place does not depend on an outer loop though it does on an inner one."""
        if any(loop >= INNER for loop in loops) or not loops:
            return bool(loops) and bool((self.rows or frozenset()) - loops)
        order = [*sorted(self.rows or ()), *sorted(dimensions - (self.rows or frozenset()))]
        innermost = max(order.index(loop) for loop in loops)
        return any(order[i] not in loops for i in range(innermost))


COSTS = {"reduce": 2.0, "gather": 4.0, "scan": 8.0}


DELICATE = 4.0
"""What operations cost that may fail for 1 and 0 and numbers made of them: divisions, roots, functions."""


def is_delicate(node: Node) -> bool:
    """Whether an operation may fail for numbers such as 1 where it does not for others."""
    return own_cost(node) >= DELICATE


def own_cost(node: Node) -> float:
    """What a node costs beside its inputs, in additions."""
    scalar = OPERATIONS[node.operation].scalar
    return scalar.cost if scalar is not None else COSTS.get(node.operation, 0.5)


def topological(roots: list[Node]) -> dict[int, int]:
    """The position of each node in an order in which inputs come first."""
    return {id(node): i for i, node in enumerate(sorted_nodes(roots))}
