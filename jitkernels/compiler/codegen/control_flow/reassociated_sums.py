"""Sums of a loop that may be added up in another order, so that LLVM keeps partial sums in the lanes of vectors.

``total += x[i] * y[i]`` depends on the sum of the iteration before, and runs at the latency of an addition as it is
written. What only adds to a float, which nothing else in the loop reads, rounds as `numpy.sum` does in vectors: with a
smaller error than in the order of iterations. Differences stay as they are written where a loop reads them.
"""

from collections.abc import Collection

from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, readers
from jitkernels.compiler.ir.regions import LoopParts
from jitkernels.compiler.transforms.trip_count import trip_count_of

FLOATS = frozenset({"float32", "float64"})
INSTRUCTIONS = {"add": "fadd", "subtract": "fsub"}
"""LLVM's instruction of each operation that may be reassociated."""


MIN_ITERATIONS = 16
"""The fewest iterations, as far as they are known, for which sums in the lanes of vectors pay."""

Addends = dict[Node, list[tuple[int, int]]]
"""By branch that adds to sums: the number of the operand that is a sum, and that of the result which it becomes."""


def reassociated_sums(loop: Node) -> tuple[set[Node], Addends]:
    """The additions in a loop that may run in any order: to loop-carried floats, or to one element of an array.

    A branch that adds to one need not know it: what it adds is added behind it, which is -0.0 where it adds nothing.
    """
    branches: Addends = {}
    if symbolic_dims.value_of(trip_count_of(loop)) < MIN_ITERATIONS:
        return set(), branches
    parts = LoopParts(loop)
    body = _Region(parts.body, branches)
    chains = [
        body.chain(parameter, output)
        for parameter, output in zip(parts.carried_parameters, parts.body.outputs, strict=True)
        if not parameter.ndim and parameter.dtype in FLOATS
    ]
    invariant = {*parts.captured_parameters}
    chains += [
        body.chain(node.inputs[1].inputs[0], node.inputs[1], is_stored=True)
        for node in parts.body
        if node.operation == "scatter" and _adds_to_element(node, invariant)
    ]
    return {node for chain in chains if chain for node in chain}, branches


class _Region:
    """The body of a loop or a side of a branch."""

    def __init__(self, graph: Graph, branches: Addends) -> None:
        self.graph, self.reads, self.branches = graph, readers(graph), branches

    def chain(self, first: Node, last: Node, *, is_stored: bool = False) -> list[Node] | None:
        """The additions from a value to the sum that becomes it; None where anything else reads one of them."""
        nodes: list[Node] = []
        through: Addends = {}
        link, users = last, self._users_of(first)
        while link is not first:
            is_end = link is last
            if link in self.graph.checks or not self._has_one_use(link, is_output=is_end and not is_stored):
                return None
            if link.operation == "item" and link.inputs[0].operation == "branch":
                before = self._through(link.inputs[0], link.options["index"], users, nodes, through)
                if before is None:
                    return None
                link = before
                continue
            if link.operation not in INSTRUCTIONS or link.dtype != first.dtype:
                return None
            nodes.append(link)
            terms = link.inputs if link.operation == "add" else link.inputs[:1]
            onward = [term for term in terms if term in users]
            if len(onward) != 1:
                return None
            link = onward[0]
        if not self._has_one_use(first, is_output=first is last):
            return None
        for branch, places in through.items():
            self.branches.setdefault(branch, []).extend(places)
        return nodes

    def _has_one_use(self, node: Node, *, is_output: bool) -> bool:
        uses = len(self.reads.get(node, ())) + sum(output is node for output in self.graph.outputs)
        return uses == 1 and is_output == any(output is node for output in self.graph.outputs)

    def _users_of(self, first: Node) -> set[Node]:
        """A value, and what is computed from it."""
        found = {first}
        for node in self.graph:
            if any(operand in found for operand in node.inputs):
                found.add(node)
        return found

    def _through(self, branch: Node, index: int, users: set[Node], nodes: list[Node], through: Addends) -> Node | None:
        """The operand of a branch to which both sides only add to make a result; their additions join `nodes`."""
        sides = [branch.options[name] for name in ("yes", "no")]
        for position, operand in enumerate(branch.inputs[1:]):
            if operand not in users or operand.ndim or operand.dtype not in FLOATS:
                continue
            inner: Addends = {}
            found = [_Region(side, inner).chain(side.inputs[position], side.outputs[index]) for side in sides]
            if any(one is None for one in found):
                return None
            through.update(inner)
            through[branch] = [(position, index)]
            nodes += [node for one in found for node in one or ()]
            return operand
        return None


def _adds_to_element(scatter: Node, invariant: Collection[Node]) -> bool:
    """Whether an assignment of an iteration adds to the element of an array that all iterations add to."""
    array, value, *indices = scatter.inputs
    if value.operation not in INSTRUCTIONS or value.dtype not in FLOATS:
        return False
    first = value.inputs[0]
    return (
        first.operation == "gather"
        and first.inputs[0] is array
        and [*first.inputs[1:]] == indices
        and all(_is_invariant(index, invariant) for index in indices)
    )


def _is_invariant(node: Node, invariant: Collection[Node]) -> bool:
    """Whether a node is the same in all iterations."""
    if node in invariant or node.operation == "constant":
        return True
    return bool(node.inputs) and all(_is_invariant(operand, invariant) for operand in node.inputs)
