"""Loops and branches that do what others do and more: these serve for both.

Derivatives make a loop again, which keeps what the way back needs or carries tangents; option `serves` says of which it
has all the results, by one of its regions.
"""

from collections.abc import Iterable

from jitkernels.graph.ir import Graph, Node, remade_of, sorted_nodes
from jitkernels.graph.regions import REGIONS, regions_of


def served(graph: Graph) -> Graph:
    """The graph in which each loop and branch is run once."""
    new = once(graph.roots)
    return remade_of(graph, lambda node: new[id(node)])


def once(roots: Iterable[Node]) -> dict[int, Node]:
    """What becomes of all that roots are made of, by ids, where each loop and branch is run once."""
    nodes = sorted_nodes(roots)
    serving = {id(node.options["serves"]): node for node in nodes if "serves" in node.options}
    new: dict[int, Node] = {}
    if not any(map(regions_of, nodes)):
        return {id(node): node for node in nodes}
    instead = {id(node): one for node in nodes if (one := _instead(node, serving)) is not None}
    for node in sorted_nodes(
        nodes, lambda node: (instead[id(node)],) if id(node) in instead else node.inputs
    ):
        if id(node) in instead:
            new[id(node)] = new[id(instead[id(node)])]
        else:
            new[id(node)] = _again(node, [new[id(one)] for one in node.inputs])
    return new


def _instead(node: Node, serving: dict[int, Node]) -> Node | None:
    """The loop or branch that serves for one."""
    for region in regions_of(node):
        one = serving.get(id(region))
        if one is not None and {id(given) for given in node.inputs} <= {id(given) for given in one.inputs}:
            return one
    return None


def _again(node: Node, inputs: list[Node]) -> Node:
    regions = {name: served_region(node.options[name]) for name in REGIONS if name in node.options}
    changed = any(one is not node.options[name] for name, one in regions.items())
    if changed:
        return Node(node.operation, inputs, node.dtype, node.shape, {**node.options, **regions})
    same = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
    return node if same else node.with_inputs(inputs)


def served_region(graph: Graph) -> Graph:
    """A region in which each loop and branch is run once."""
    return served(graph) if any(map(regions_of, graph)) else graph
