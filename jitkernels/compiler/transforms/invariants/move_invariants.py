"""Loop-invariant code motion in all loops of a graph, inner loops first: what leaves one may leave the next."""

from types import MappingProxyType

from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.regions import regions_of, with_regions
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.transforms.invariants import (
    array_invariants,
    register_promotion,
    scalar_expansion,
    vectorize_expansions,
)
from jitkernels.compiler.transforms.invariants.outer_loop import OuterLoop
from jitkernels.compiler.transforms.loop_ints import Ints, ints_inside, with_carried_ints


def move_invariants(graph: Graph, scope: Scope) -> Graph:
    """Let loops load what they would compute again in each iteration."""
    new = _moved(graph, scope, MappingProxyType({}), is_region=False)
    return graph if new is graph else vectorize_expansions.vectorize_expansions(new, scope)


def _moved(graph: Graph, scope: Scope, ints: Ints, *, is_region: bool = True) -> Graph:
    if not any(map(regions_of, graph)):
        return graph
    known = with_carried_ints(graph, ints, scope)
    results: dict[Node, dict[int, Node]] = {}

    def rule(node: Node) -> Node:
        if node.operation == "item" and node.inputs[0] in results:
            return results[node.inputs[0]].get(node.options["index"], node)
        node = with_regions(
            node, node.inputs, lambda region: _moved(region, scope, ints_inside(node, region, known, scope))
        )
        if node.operation != "loop":
            return node
        node = scalar_expansion.expanded(OuterLoop(node, known))
        node = array_invariants.without_invariants(OuterLoop(node, known))
        if is_region:
            node, results[node] = register_promotion.promoted(OuterLoop(node, known))
        return node

    new = transformed(graph, rule)
    return graph if all(one is other for one, other in zip(new.roots, graph.roots, strict=True)) else new
