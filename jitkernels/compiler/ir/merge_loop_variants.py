"""Merge variants of one loop or branch: a rebuilt one that returns more results replaces the original.

Derivatives rebuild loops to write tapes or to carry tangents; the option `serves` of a rebuilt node is a region of the
node that it can replace.
"""

from collections.abc import Iterable

from jitkernels.compiler.ir.graph import Graph, Node, rebuild_roots, sorted_nodes
from jitkernels.compiler.ir.regions import REGIONS, regions_of


def served(graph: Graph) -> Graph:
    """The graph in which each loop and branch runs once."""
    new = once(graph.roots)
    return rebuild_roots(graph, lambda node: new[id(node)])


def once(roots: Iterable[Node]) -> dict[int, Node]:
    """By the ids of all nodes that roots depend on, the nodes in a graph in which each loop and branch runs once."""
    nodes = sorted_nodes(roots)
    variants = {id(node.options["serves"]): node for node in nodes if "serves" in node.options}
    new: dict[int, Node] = {}
    if not any(map(regions_of, nodes)):
        return {id(node): node for node in nodes}
    replacements = {id(node): variant for node in nodes if (variant := _replacement_of(node, variants)) is not None}
    for node in sorted_nodes(
        nodes, lambda node: (replacements[id(node)],) if id(node) in replacements else node.inputs
    ):
        if id(node) in replacements:
            new[id(node)] = new[id(replacements[id(node)])]
        else:
            new[id(node)] = _rebuild(node, [new[id(operand)] for operand in node.inputs])
    return new


def _replacement_of(node: Node, serving: dict[int, Node]) -> Node | None:
    """The loop or branch that serves for one."""
    for region in regions_of(node):
        variant = serving.get(id(region))
        if variant is not None and {id(operand) for operand in node.inputs} <= {
            id(operand) for operand in variant.inputs
        }:
            return variant
    return None


def _rebuild(node: Node, inputs: list[Node]) -> Node:
    regions = {name: merge_in_region(node.options[name]) for name in REGIONS if name in node.options}
    changed = any(value is not node.options[name] for name, value in regions.items())
    if changed:
        return Node(node.operation, inputs, node.dtype, node.shape, {**node.options, **regions})
    same = all(new_operand is operand for new_operand, operand in zip(inputs, node.inputs, strict=True))
    return node if same else node.with_inputs(inputs)


def merge_in_region(graph: Graph) -> Graph:
    """A region in which each loop and branch is run once."""
    return served(graph) if any(map(regions_of, graph)) else graph
