"""Loops that compute arrays of scalar expansion become loop nests, whose vector code of functions is faster.

Unlike loops of programs they do if their trip count varies in an enclosing loop: they compute nothing else.
"""

from types import MappingProxyType

from jitkernels.compiler.ir.dim_bounds import is_surely_at_least
from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.regions import LoopParts, regions_of, with_regions
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.transforms.invariants.scalar_expansion import EXPANDS
from jitkernels.compiler.transforms.loop_ints import Ints, ints_inside, with_carried_ints
from jitkernels.compiler.transforms.loop_iterations import iterations_of
from jitkernels.compiler.transforms.vectorize_loops import batched_iterations, has_vector_code


def vectorize_expansions(graph: Graph, scope: Scope, ints: Ints = MappingProxyType({})) -> Graph:
    """Turn the loops of scalar expansion that call functions into nodes of arrays."""
    if not any(map(regions_of, graph)):
        return graph
    known = with_carried_ints(graph, ints, scope)
    results: dict[Node, list[Node]] = {}

    def rule(node: Node) -> Node:
        if node.operation == "item" and node.inputs[0] in results:
            index: int = node.options["index"]
            return results[node.inputs[0]][index]
        if EXPANDS in node.options:
            arrays = _arrays_of(node, scope, known)
            if arrays is not None:
                results[node] = arrays
            return node
        return with_regions(
            node,
            node.inputs,
            lambda region: vectorize_expansions(region, scope, ints_inside(node, region, known, scope)),
        )

    return transformed(graph, rule)


def _arrays_of(loop: Node, scope: Scope, ints: Ints) -> list[Node] | None:
    """The arrays without a loop; None where they have no such form, or no faster code."""
    parts = LoopParts(loop)
    iterations = iterations_of(parts, ints)
    if iterations is None or not is_surely_at_least(iterations.trip_count, 0):
        return None
    if not any(map(has_vector_code, parts.body)) or not parts.induction[0].options.get("symbol"):
        return None
    batch = batched_iterations(parts, iterations, scope, ints)
    if batch is None:
        return None
    scope.has_scalar_loops = True
    return [batch.known[output] for output in parts.body.outputs]
