"""What is kept in place of a reduction: what is made of it element by element, as a bias and an activation are.

Where a reduction cannot be computed inside of what reads it, it is stored. Its readers would each make the same of
every element then, and in a product of matrices again for every column. It takes less to do so once, when it is stored.
"""

from collections.abc import Container, Mapping, Sequence

from jitkernels.graph import cones, extents
from jitkernels.graph.cones import is_inline
from jitkernels.graph.extents import same
from jitkernels.graph.ir import Graph, Node, readers
from jitkernels.graph.operations import OPERATIONS
from jitkernels.native.language.types import NUMBERS


class Finishing:
    """Knows the nodes of a graph, and what reads them."""

    def __init__(self, graph: Graph) -> None:
        self._readers: Mapping[int, Sequence[Node]] = readers(graph)
        self._roots = {id(node) for node in graph.roots}
        self._plain: dict[int, bool] = {}

    def last(self, node: Node, kept: Container[int]) -> Node:
        """The last node that is made of a reduction alone and of what is at hand, in as much memory; itself if none."""
        found = made = node
        while node.operation == "reduce" and node.ndim and id(made) not in self._roots:
            among = {id(one): one for one in self._readers[id(made)]}
            if len(among) != 1:
                break
            (reader,) = among.values()
            if id(reader) in kept:
                break
            if self._is_finish(reader, made):
                found = reader
            elif not shows_each_once(reader, made):
                break
            made = reader
        return found

    def _is_finish(self, reader: Node, made: Node) -> bool:
        """Whether a node is elementwise, like what it is made of, and needs no other reduction."""
        if not OPERATIONS[reader.operation].is_elementwise or cones.own_cost(reader) >= cones.COSTLY:
            return False
        if NUMBERS[reader.dtype].size > NUMBERS[made.dtype].size:
            return False
        if extents.key_of_shape(reader.shape) != extents.key_of_shape(made.shape):
            return False
        return all(one is made or self._is_plain(one) for one in reader.inputs)

    def _is_plain(self, node: Node) -> bool:
        """Whether a node is no more than an array, a number or part of one."""
        while node.operation in ("view", "cast"):
            (node,) = node.inputs
        return node.operation in ("input", "parameter", "constant", "extent") or not is_inline(node)


def shows_each_once(node: Node, base: Node) -> bool:
    """Whether a node is a view that has each element of another one in a place of its own, and nothing else."""
    if node.operation != "view" or not all(same(first, 0) for first, _ in node.options["map"]):
        return False
    moves = [(steps, extent) for (_, steps), extent in zip(node.options["map"], base.shape, strict=True)]
    if any(len(steps) > 1 or not (steps or same(extent, 1)) for steps, extent in moves):
        return False
    shown = {steps[0][0]: extent for steps, extent in moves if steps and same(steps[0][1], 1)}
    return len(shown) == sum(bool(steps) for steps, _ in moves) and all(
        same(extent, shown.get(i, 1)) for i, extent in enumerate(node.shape)
    )
