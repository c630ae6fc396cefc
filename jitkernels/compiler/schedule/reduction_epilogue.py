"""Reduction epilogues: materialize a reduction's elementwise epilogue (bias, activation) instead of the reduction.

Where a reduction cannot be fused into its readers, it is materialized. Each reader would then recompute the same
epilogue for every element, and in a matrix product again for every column. Computed at the store, it runs once.
"""

from collections.abc import Container

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import ops, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, readers
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.schedule import fusion_region
from jitkernels.compiler.schedule.fusion_region import is_inline


class ReductionEpilogues:
    """Finds reduction epilogues by the readers of a graph's nodes."""

    def __init__(self, graph: Graph) -> None:
        self._readers, self._roots = readers(graph), set(graph.roots)

    def last(self, node: Node, materialized: Container[Node]) -> Node:
        """The last node of a reduction's epilogue, in as much memory; the node itself if there is none."""
        result = current = node
        while node.operation == "reduce" and node.ndim and current not in self._roots:
            users = set(self._readers[current])
            if len(users) != 1:
                break
            reader = users.pop()
            if reader in materialized:
                break
            if self._is_epilogue(reader, current):
                result = reader
            elif not shows_each_once(reader, current):
                break
            current = reader
        return result

    def _is_epilogue(self, reader: Node, made: Node) -> bool:
        """Return whether a node is a cheap elementwise function of `made` and available arrays."""
        if not OPERATIONS[reader.operation].is_elementwise or ops.own_cost(reader) >= fusion_region.COSTLY:
            return False
        if NUMBERS[reader.dtype].size > NUMBERS[made.dtype].size:
            return False
        if symbolic_dims.key_of_shape(reader.shape) != symbolic_dims.key_of_shape(made.shape):
            return False
        return all(operand is made or self._is_available(operand) for operand in reader.inputs)

    def _is_available(self, node: Node) -> bool:
        """Return whether a node is an array, a scalar, or a view of one."""
        while node.operation in ("view", "cast"):
            (node,) = node.inputs
        return node.operation in ("input", "parameter", "constant", "extent") or not is_inline(node)


def shows_each_once(node: Node, base: Node) -> bool:
    """Return whether a view shows each element of its base exactly once."""
    if node.operation != "view" or not all(same(first, 0) for first, _ in node.options["map"]):
        return False
    coefficients = [(terms, extent) for (_, terms), extent in zip(node.options["map"], base.shape, strict=True)]
    if any(len(terms) > 1 or not (terms or same(extent, 1)) for terms, extent in coefficients):
        return False
    shown = {terms[0][0]: extent for terms, extent in coefficients if terms and same(terms[0][1], 1)}
    return len(shown) == sum(bool(terms) for terms, _ in coefficients) and all(
        same(extent, shown.get(i, 1)) for i, extent in enumerate(node.shape)
    )
