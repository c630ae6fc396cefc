"""Structured control flow: loop and branch nodes that hold regions, which are graphs with explicit captures.

``loop``: operands are the bounds (begin, end, step) of the induction variable if it `counts`, then `carried` initial
values, then captured values. While `condition` is true, `body` computes the carried values of the next iteration; both
take the induction variable, the carried and the captured values as parameters, in this order. The results are the
carried values after the last iteration.

``branch``: operands are a condition and captured values; the results are those of the region `yes` or `no`. `bases`
gives for each result the index of the captured value in whose memory it is, -1 for scalars.

Each result is an ``item`` node. Inputs of regions are ``parameter`` nodes, each of which belongs to one region. Code
names the parts of a loop by `LoopParts`, not by option strings and positions.

A loop with the option `tiles` was made of array operations, as a loop over tiles: what runs in it rounds and reports
floating-point errors as these do.

Derivatives rebuild loops and branches to write tapes or to carry tangents; the option `serves` of a rebuilt node is a
region of the node that it can replace, see `merge_variants`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.graph import Graph, Node, rebuild_roots, sorted_nodes
from jitkernels.compiler.ir.symbolic_dims import Extent, symbols_of

REGIONS = ("condition", "body", "yes", "no")
"""The node options that hold regions."""
COPIED = frozenset({"constant", "extent"})
"""Operations that regions clone instead of capturing their results."""
TRUE = Node("constant", (), "bool", (), {"value": True})
"""The condition of a loop that runs all iterations of its induction variable."""


class LoopParts:
    """A loop node by the names of its operands, and of the parameters of its body."""

    def __init__(self, node: Node) -> None:
        self.node, options, inputs = node, node.options, node.inputs
        self.counts: bool = options["counts"]
        self.first_operand, self.first_parameter = (3, 1) if self.counts else (0, 0)
        self.carried_count: int = options["carried"]
        end = self.first_operand + self.carried_count
        self.bounds, self.carried, self.captured = (
            inputs[: self.first_operand],
            inputs[self.first_operand : end],
            inputs[end:],
        )
        self.body: Graph = options["body"]
        self.condition: Graph = options["condition"]

    @property
    def induction(self) -> tuple[Node, ...]:
        """The parameter of the induction variable, if there is one."""
        return self.body.inputs[: self.first_parameter]

    @property
    def step(self) -> int:
        """The constant step of the induction variable."""
        return int(self.bounds[2].options["value"])

    @property
    def has_unit_step(self) -> bool:
        """Whether all iterations of an induction variable with step 1 or -1 run."""
        return self.counts and abs(self.step) == 1 and self.condition.outputs[0].options.get("value") is True

    @property
    def carried_parameters(self) -> tuple[Node, ...]:
        return self.body.inputs[self.first_parameter : self.first_parameter + self.carried_count]

    @property
    def captured_parameters(self) -> tuple[Node, ...]:
        return self.body.inputs[self.first_parameter + self.carried_count :]


def is_tiled_loop(node: Node) -> bool:
    """Whether a node is a loop over tiles of arrays."""
    return node.operation == "loop" and "tiles" in node.options


def parameter(dtype: str, shape: Iterable[Any], index: int, symbol: str = "") -> Node:
    """An input of a region. `symbol`: the symbol that extents in the region use for it, if it is a loop-variant int."""
    return Node("parameter", (), dtype, shape, {"index": index, **({"symbol": symbol} if symbol else {})})


def regions_of(node: Node) -> list[Graph]:
    """The regions that a node holds."""
    return [node.options[name] for name in REGIONS if name in node.options]


def items(node: Node, like: Iterable[Node]) -> list[Node]:
    """The results of a loop or branch; `like`: nodes of their dtypes and shapes."""
    return [Node("item", (node,), result.dtype, result.shape, {"index": i}) for i, result in enumerate(like)]


def walk_nodes(graph: Graph) -> Iterable[Node]:
    """The nodes of a graph and of all regions in it, recursively."""
    for node in graph:
        yield node
        for region in regions_of(node):
            yield from walk_nodes(region)


class RegionBuilder:
    """Builds regions from nodes that use `parameters`: a node with a serial number below `start` is captured.

    `hoisted`: what to capture instead of some nodes.
    """

    def __init__(self, parameters: Sequence[Node], start: int) -> None:
        self.parameters, self.start = list(parameters), start
        self.captured: list[Node] = []
        self.hoisted: dict[Node, Node] = {}
        self._new: dict[Node, Node] = {node: node for node in parameters}

    def inside(self, roots: Sequence[Node]) -> list[Node]:
        """Clone the nodes into the region."""
        for root in roots:
            stack = [(root, False)]
            while stack:
                node, expanded = stack.pop()
                if node in self._new:
                    continue
                if node in self.hoisted:
                    self._new[node] = self.capture(self.hoisted[node])
                elif node.serial < self.start:
                    self._new[node] = node if node.operation in COPIED else self.capture(node)
                elif expanded:
                    self._new[node] = node.with_inputs([self._new[operand] for operand in node.inputs])
                else:
                    stack.append((node, True))
                    stack.extend((operand, False) for operand in node.inputs if operand not in self._new)
        return [self._new[root] for root in roots]

    def capture(self, node: Node) -> Node:
        """The parameter for a captured node."""
        self.captured.append(node)
        self._new[node] = parameter(node.dtype, node.shape, len(self.parameters) + len(self.captured) - 1)
        return self._new[node]

    def graph(self, outputs: Sequence[Node], checks: Sequence[Node]) -> Graph:
        """A region, after all roots of all regions of the node went through `inside`."""
        inputs = (*self.parameters, *(self._new[node] for node in self.captured))
        return Graph(inputs, tuple(outputs), checks=tuple(dict.fromkeys(checks)))


def leaked(graph: Graph) -> bool:
    """Whether a value from inside a region is used outside of it."""
    inputs = set(graph.inputs)
    return any(
        (node.operation == "parameter" and node not in inputs) or any(map(leaked, regions_of(node)))
        for node in sorted_nodes(graph.roots)
    )


def reachable(roots: Iterable[Node], replaced: Mapping[Node, Node]) -> list[Node]:
    """All nodes that roots depend on in topological order, with replacements applied."""
    return sorted_nodes(roots, lambda node: (replaced[node],) if node in replaced else node.inputs)


def clone_region(
    captured: Sequence[Node],
    outputs: Sequence[Node],
    checks: Sequence[Node] = (),
    replaced: Mapping[Node, Node] | None = None,
) -> Graph:
    """A new region with a parameter for each node of `captured`."""
    own = [
        parameter(
            value.dtype, value.shape, i, value.options.get("symbol", "") if value.operation == "parameter" else ""
        )
        for i, value in enumerate(captured)
    ]
    new: dict[Node, Node] = dict(zip(captured, own, strict=True))
    instead = {key: value for key, value in (replaced or {}).items() if key not in new}
    for node in reachable([*outputs, *checks], {**instead, **new}):
        if node in new:
            continue
        if node in instead:
            new[node] = new[instead[node]]
        else:
            new[node] = node.with_inputs([new[operand] for operand in node.inputs]) if node.inputs else node
    return Graph(
        tuple(own), tuple(new[node] for node in outputs), checks=tuple(dict.fromkeys(new[check] for check in checks))
    )


def symbols_in(nodes: Iterable[Node]) -> set[str]:
    """The symbols that the shapes and options of nodes use, including those of nested regions."""
    symbols: set[str] = set()
    for node in nodes:
        for value in (node, *(inner for region in regions_of(node) for inner in walk_nodes(region))):
            extents = pytree.leaves((value.shape, *value.options.values()))
            symbols.update(*(symbols_of(extent) for extent in extents if isinstance(extent, Extent)))
    return symbols


def merge_variants(graph: Graph) -> Graph:
    """The graph in which each loop and branch runs once: its variant that returns more results replaces it."""
    new = merged_nodes(graph.roots)
    return rebuild_roots(graph, new.__getitem__)


def merged_nodes(roots: Iterable[Node]) -> dict[Node, Node]:
    """For each node that roots depend on its replacement in a graph in which each loop and branch runs once."""
    nodes = sorted_nodes(roots)
    if not any(map(regions_of, nodes)):
        return {node: node for node in nodes}
    variants = {id(node.options["serves"]): node for node in nodes if "serves" in node.options}
    replacements = {node: variant for node in nodes if (variant := _variant_of(node, variants)) is not None}
    new: dict[Node, Node] = {}
    for node in reachable(nodes, replacements):
        if node in replacements:
            new[node] = new[replacements[node]]
        else:
            new[node] = with_regions(node, [new[operand] for operand in node.inputs], _merge_in_region)
    return new


def _variant_of(node: Node, variants: Mapping[int, Node]) -> Node | None:
    """The variant of a loop or branch, by the ids of regions that variants replace."""
    for region in regions_of(node):
        variant = variants.get(id(region))
        if variant is not None and set(node.inputs) <= set(variant.inputs):
            return variant
    return None


def _merge_in_region(graph: Graph) -> Graph:
    return merge_variants(graph) if any(map(regions_of, graph)) else graph


def with_regions(node: Node, inputs: Sequence[Node], change: Callable[[Graph], Graph]) -> Node:
    """A node with new operands and its regions changed; the node itself where all are the same."""
    regions = {name: change(node.options[name]) for name in REGIONS if name in node.options}
    if any(region is not node.options[name] for name, region in regions.items()):
        return Node(node.operation, inputs, node.dtype, node.shape, {**node.options, **regions})
    return node.replace_inputs(inputs)
