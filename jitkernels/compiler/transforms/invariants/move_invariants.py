"""Loop-invariant code motion in all loops of a graph, inner loops first: what leaves one may leave the next."""

from types import MappingProxyType

from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.regions import regions_of, with_regions
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.transforms.invariants import array_invariants, scalar_expansion, vectorize_expansions
from jitkernels.compiler.transforms.invariants.outer_loop import OuterLoop
from jitkernels.compiler.transforms.loop_ints import Ints, ints_inside, with_carried_ints


def move_invariants(graph: Graph, scope: Scope) -> Graph:
    """Let loops load what they would compute again in each iteration."""
    new = _moved(graph, scope, MappingProxyType({}))
    return graph if new is graph else vectorize_expansions.vectorize_expansions(new, scope)


def _moved(graph: Graph, scope: Scope, ints: Ints) -> Graph:
    if not any(map(regions_of, graph)):
        return graph
    known = with_carried_ints(graph, ints, scope)

    def rule(node: Node) -> Node:
        node = with_regions(
            node, node.inputs, lambda region: _moved(region, scope, ints_inside(node, region, known, scope))
        )
        if node.operation != "loop":
            return node
        node = scalar_expansion.expanded(OuterLoop(node, known))
        return array_invariants.without_invariants(OuterLoop(node, known))

    new = transformed(graph, rule)
    return graph if all(one is other for one, other in zip(new.roots, graph.roots, strict=True)) else new
