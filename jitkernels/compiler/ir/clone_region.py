"""Cloning of regions: copy nodes into a new region with its own parameters."""

from collections.abc import Iterable, Mapping, Sequence

from jitkernels.compiler.ir.graph import Graph, Node, sorted_nodes
from jitkernels.compiler.ir.regions import parameter, regions_of, walk_nodes
from jitkernels.compiler.ir.symbolic_dims import Extent, symbols_of

Replaced = Mapping[int, Node]
"""By the ids of nodes, their replacements."""


def reached(roots: Iterable[Node], replaced: Replaced) -> dict[int, Node]:
    """All nodes that roots depend on, by ids in topological order, with replacements applied."""
    nodes = sorted_nodes(roots, lambda node: (replaced[id(node)],) if id(node) in replaced else node.inputs)
    return {id(node): node for node in nodes}


def region(
    captured: Sequence[Node], outputs: Sequence[Node], checks: Sequence[Node] = (), replaced: Replaced | None = None
) -> Graph:
    """A new region with a parameter for each node of `captured`."""
    own = [
        parameter(
            value.dtype, value.shape, i, value.options.get("symbol", "") if value.operation == "parameter" else ""
        )
        for i, value in enumerate(captured)
    ]
    new: dict[int, Node] = {id(value): own_parameter for value, own_parameter in zip(captured, own, strict=True)}
    instead = {key: value for key, value in (replaced or {}).items() if key not in new}
    for key, node in reached([*outputs, *checks], {**instead, **new}).items():
        if key in new:
            continue
        if key in instead:
            new[key] = new[id(instead[key])]
        elif not node.inputs:
            new[key] = node
        else:
            new[key] = node.with_inputs([new[id(operand)] for operand in node.inputs])
    return Graph(
        tuple(own),
        tuple(new[id(node)] for node in outputs),
        checks=tuple(dict.fromkeys(new[id(check)] for check in checks)),
    )


def symbols_in(nodes: Iterable[Node]) -> set[str]:
    """The symbols that the shapes and options of nodes use, including those of nested regions."""
    symbols: set[str] = set()
    for node in nodes:
        symbols |= _symbols((node.shape, *node.options.values()))
        for inner in regions_of(node):
            for value in walk_nodes(inner):
                symbols |= _symbols((value.shape, *value.options.values()))
    return symbols


def _symbols(value: object) -> set[str]:
    if isinstance(value, Extent):
        return symbols_of(value)
    if isinstance(value, tuple | list):
        return set().union(*map(_symbols, value))
    return set()
