"""Indices that move with the count of a loop: looked at before it, at both its ends, so that no round has to.

``for c in range(n, w - 1, -1): best[c - w] ...``, where nothing tells what w is: if the first index and the last one
are in the array, so are those between, and a form of the loop without tests runs; else the one with them.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jitkernels.graph.bodies import Body
from jitkernels.graph.emit.short_loops import Around, inside, resolved
from jitkernels.graph.extents import is_moving
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.regions import nodes_within

MOST_NODES = 200
"""How large a round may be of which there are two forms."""
SIGNS = {"add": 1, "subtract": -1}


class Moving(NamedTuple):
    """An index: the count times `sign`, and numbers that no round changes times theirs."""

    node: Node
    sign: int
    terms: tuple[tuple[int, Node], ...]


def moving_indices(loop: Node, bodies: Mapping[int, Body]) -> list[Moving]:
    """The indices of a loop that have to be tested, and can be tested before it; none for loops around others."""
    options = loop.options
    if not options["counts"] or loop.inputs[2].operation != "constant":
        return []
    within = [*nodes_within(options["body"])]
    if len(within) > MOST_NODES or any(
        one.operation in ("loop", "bounded") and "grows" in one.options for one in within
    ):
        return []
    if any(one.operation == "loop" for one in within) or any(
        group for _, group in bodies[id(options["body"])].stages
    ):
        return []
    found = []
    for node, around in _bounded(options["body"], {}):
        number = _Sum(options["body"].inputs, options["carried"])
        if (
            not is_moving(node.options["extent"])
            and number.add(node.inputs[0], around, 1)
            and abs(number.sign) == 1
        ):
            found.append(Moving(node, number.sign, tuple(number.terms)))
    return found


def _bounded(graph: Graph, around: Around) -> Iterator[tuple[Node, Around]]:
    """The indices in a region and in the branches there."""
    for node in graph:
        if node.operation == "bounded":
            yield node, around
        elif node.operation == "branch":
            for name in ("yes", "no"):
                yield from _bounded(node.options[name], inside(node, name, around))


class _Sum:
    """What an index is the sum of."""

    def __init__(self, inputs: list[Node], carried: int) -> None:
        self.count, self.kept = inputs[0], {id(one) for one in inputs[1 + carried :]}
        self.sign = 0
        self.terms: list[tuple[int, Node]] = []

    def add(self, node: Node, around: Around, sign: int) -> bool:
        """Add a node times a sign; whether that could be done."""
        node, around = resolved(node, around)
        if node is self.count:
            self.sign += sign
            return True
        if node.operation in SIGNS and node.dtype == "int64":
            one, other = node.inputs
            return self.add(one, around, sign) and self.add(other, around, sign * SIGNS[node.operation])
        if (
            id(node) in self.kept
            or node.operation == "constant"
            or (node.operation == "extent" and not is_moving(node.options["extent"]))
        ):
            self.terms.append((sign, node))
            return True
        return False
