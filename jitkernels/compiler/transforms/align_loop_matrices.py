"""Matrices that rounds of a loop multiply vectors with: copied once to where lines of the cache begin.

NumPy's arrays begin anywhere in a line. Vectors of a matrix then lie in two lines each, and a product with a vector,
which does nothing but read, takes up to a third longer. A copy costs about two such products; it is taken where rounds
are many, rows are whole lines, and the matrix stays in the caches.
"""

from collections.abc import Iterable

from jitkernels.graph import construct, extents
from jitkernels.graph.extents import Extent, Number, same
from jitkernels.graph.flows import changed, is_flow
from jitkernels.graph.ir import Graph, Node, transformed
from jitkernels.graph.products import is_dense
from jitkernels.graph.regions import regions_of
from jitkernels.graph.rounds import rounds_of
from jitkernels.native.language.types import NUMBERS

LINE = 64
LEAST_BYTES, MOST_BYTES = 1 << 10, 1 << 19
LEAST_ROUNDS = 32


def with_aligned_matrices(graph: Graph) -> Graph:
    """The graph whose loops read such copies of arguments."""
    copies: dict[int, Node] = {}

    def rule(node: Node) -> Node:
        if node.operation != "loop":
            return node
        inputs = list(node.inputs)
        kept = set(changed(node))
        for place, one in enumerate(inputs):
            if place in kept or one.operation != "input" or one.ndim != 2 or not is_dense(one):
                continue
            if _products(node, {place}) >= LEAST_ROUNDS and _is_worth_it(one):
                inputs[place] = copies.setdefault(id(one), construct.copy(one))
        same_ones = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        return node if same_ones else node.with_inputs(inputs)

    return transformed(graph, rule)


def _products(flow: Node, places: Iterable[int]) -> int:
    """How many products with vectors of inputs of a loop or branch it does, about."""
    first = (
        3 if flow.operation == "loop" and flow.options["counts"] else 1 if flow.operation == "branch" else 0
    )
    shift = 1 if first == 3 else 0
    total = 0
    for region in regions_of(flow):
        given = {id(region.inputs[place - first + shift]) for place in places if place >= first}
        for node in region:
            if is_flow(node):
                total += _products(node, [i for i, one in enumerate(node.inputs) if id(one) in given])
            elif node.operation == "matmul" and any(same(one, 1) for one in node.shape):
                total += sum(id(one) in given or _shows(one, given) for one in node.inputs)
    return total * (extents.value_of(rounds_of(flow)) if flow.operation == "loop" else 1)


def _shows(node: Node, given: set[int]) -> bool:
    """Whether a node is all of an array, turned."""
    return node.operation == "view" and id(node.inputs[0]) in given and node.ndim == 2


def _is_worth_it(node: Node) -> bool:
    """By its size, and the length of its rows; code is for calls of which that holds, or does not."""
    size = NUMBERS[node.dtype].size
    whole = extents.product(node.shape) * size
    row: Number = node.shape[-1] * size
    asked = ((whole - LEAST_BYTES, ">="), (MOST_BYTES - whole, ">="), (row % LINE, "=="))
    return all(_holds(extent, sign) for extent, sign in asked)


def _holds(extent: Number, sign: str) -> bool:
    now = extents.value_of(extent)
    holds = now == 0 if sign == "==" else now >= 0
    if isinstance(extent, Extent):
        if sign == "==":
            extent.guard(extent, "==" if holds else "!=", is_choice=True)
        else:
            extent.guard(extent if holds else -1 - extent, ">=", is_choice=True)
    return holds
