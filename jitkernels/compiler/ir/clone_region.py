"""Regions made of nodes of others: the same nodes again, of other parameters."""

from collections.abc import Iterable, Mapping, Sequence

from jitkernels.graph.extents import Extent, symbols_of
from jitkernels.graph.ir import Graph, Node, sorted_nodes
from jitkernels.graph.regions import nodes_within, parameter, regions_of

Replaced = Mapping[int, Node]
"""By the ids of nodes, what is in their place."""


def reached(roots: Iterable[Node], replaced: Replaced) -> dict[int, Node]:
    """All that roots are made of, by ids, each behind what it is made of; of what is replaced what is in its place."""
    found = sorted_nodes(roots, lambda node: (replaced[id(node)],) if id(node) in replaced else node.inputs)
    return {id(node): node for node in found}


def region(
    given: Sequence[Node],
    outputs: Sequence[Node],
    checks: Sequence[Node] = (),
    replaced: Replaced | None = None,
) -> Graph:
    """A region of its own with a parameter for each node that is given."""
    own = [
        parameter(
            one.dtype, one.shape, i, one.options.get("symbol", "") if one.operation == "parameter" else ""
        )
        for i, one in enumerate(given)
    ]
    new: dict[int, Node] = {id(one): other for one, other in zip(given, own, strict=True)}
    instead = {key: one for key, one in (replaced or {}).items() if key not in new}
    for key, node in reached([*outputs, *checks], {**instead, **new}).items():
        if key in new:
            continue
        if key in instead:
            new[key] = new[id(instead[key])]
        elif not node.inputs:
            new[key] = node
        else:
            new[key] = node.with_inputs([new[id(one)] for one in node.inputs])
    return Graph(
        tuple(own),
        tuple(new[id(one)] for one in outputs),
        checks=tuple(dict.fromkeys(new[id(one)] for one in checks)),
    )


def symbols_in(nodes: Iterable[Node]) -> set[str]:
    """The symbols that nodes are about, those of regions in them as well."""
    found: set[str] = set()
    for node in nodes:
        found |= _symbols((node.shape, *node.options.values()))
        for inner in regions_of(node):
            for one in nodes_within(inner):
                found |= _symbols((one.shape, *one.options.values()))
    return found


def _symbols(value: object) -> set[str]:
    if isinstance(value, Extent):
        return symbols_of(value)
    if isinstance(value, tuple | list):
        return set().union(*map(_symbols, value))
    return set()
