"""Views of results become views of what they are computed from: of inputs, where they cost nothing.

1. A view of an elementwise node that nothing else reads is the node of views of its operands: transposes meet, and only
   what is looked at is computed. Repeating elements stays behind the operation; windows, which repeat too, stay. So do
   transposes that a matrix product reads: it takes them as they are.
2. A view, read by elementwise nodes, of what costs a few additions and reads one input is computed from a view of that.
3. A reshape of elementwise nodes that nothing else reads is that of what they read, if this lies there as a whole.

Chains move at once: one sweep backwards through the graph decides how each node is wanted, one forwards makes it.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jitkernels.graph import construct
from jitkernels.graph.config import JitConfig
from jitkernels.graph.extents import Number, same_shape
from jitkernels.graph.ir import Graph, Node, readers
from jitkernels.graph.passes.maps import before_repeats, behind_repeats, only_places, operand_map, overlaps
from jitkernels.graph.passes.matching import is_elementwise
from jitkernels.graph.passes.rewriting import counts_of, rebuilt
from jitkernels.graph.scalars import SCALARS

CHEAP = 2.0
"""In additions: at most this is computed twice rather than stored."""


class Wanted(NamedTuple):
    """How a node is wanted by its only reader: as a view by a map, or reshaped where that is None."""

    map: Any
    shape: tuple[Number, ...]


class Plan:
    """What one run of the pass knows of a graph, and decides."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = list(graph)
        self.counts = counts_of(graph, self.nodes)
        self.readers = readers(self.nodes)
        self.wanted: dict[int, Wanted] = {}
        self.again: set[int] = set()
        self.whole: dict[int, bool] = {}
        for node in self.nodes:
            self.whole[id(node)] = node.operation != "view" and (
                not is_elementwise(node)
                or all(
                    one.ndim == 0 or (self.whole[id(one)] and same_shape(one.shape, node.shape))
                    for one in node.inputs
                )
            )

    def propose(self, node: Node, wanted: Wanted) -> None:
        """Lets a node be made as its only reader wants it, if it can be."""
        if self.counts[id(node)] != 1 or node.ndim == 0:
            return
        if wanted.map is None:
            if same_shape(node.shape, wanted.shape):
                return
        elif construct.is_identity(node.shape, wanted.map, wanted.shape):
            return
        passes_on = node.operation == ("reshape" if wanted.map is None else "view")
        if passes_on or (
            is_elementwise(node) and all(self.of_operand(one, node, wanted) for one in node.inputs)
        ):
            self.wanted[id(node)] = wanted

    def of_operand(self, one: Node, node: Node, wanted: Wanted) -> Wanted | None:
        """How an operand is wanted if its reader is."""
        if wanted.map is None:
            return wanted
        found = operand_map(one.shape, node.shape, wanted.map, wanted.shape)
        return None if found is None else Wanted(*found)

    def of_view(self, node: Node) -> Wanted:
        """What a view shows of its input: by itself, or as its reader wants it."""
        wanted = self.wanted.get(id(node))
        if wanted is None:
            return Wanted(node.options["map"], node.shape)
        return Wanted(construct.composed(node.options["map"], wanted.map), wanted.shape)

    def shape_of(self, node: Node) -> tuple[Number, ...]:
        """The shape of a reshape: its own, or the one that its reader wants."""
        wanted = self.wanted.get(id(node))
        return node.shape if wanted is None else wanted.shape

    def shown(self, one: Node, built: Node, node: Node, wanted: Wanted) -> Node:
        """An operand of a node that is wanted otherwise."""
        how = self.of_operand(one, node, wanted)
        if id(one) in self.wanted or one.ndim == 0 or how is None:
            return built
        return reshaped(built, how.shape) if how.map is None else construct.view(built, how.map, how.shape)


def reshaped(node: Node, shape: tuple[Number, ...]) -> Node:
    return node if same_shape(node.shape, shape) else Node("reshape", (node,), node.dtype, shape)


def rule_1_view_of_elementwise(node: Node, plan: Plan) -> None:
    if node.operation != "view":
        return
    index_map, shape = plan.of_view(node)
    for_product = any(reader.operation == "matmul" for reader in plan.readers[id(node)])
    if not overlaps(index_map) and not (for_product and only_places(node)):
        plan.propose(node.inputs[0], Wanted(*before_repeats(index_map, shape)))


def rule_2_view_of_cheap(node: Node, plan: Plan) -> None:
    inner = node.inputs[0] if node.operation == "view" else node
    if inner is node or not is_elementwise(inner) or id(node) in plan.wanted or id(inner) in plan.wanted:
        return
    cost = SCALARS[inner.operation].cost if inner.operation in SCALARS else 1.0
    arrays = [one for one in inner.inputs if one.ndim]
    sources = [one.inputs[0] if one.operation == "view" else one for one in arrays]
    if cost > CHEAP or len(arrays) != 1 or sources[0].operation != "input":
        return
    reading = plan.readers[id(node)]
    index_map, shape = plan.of_view(node)
    wanted = Wanted(*before_repeats(index_map, shape))
    if (
        reading
        and all(map(is_elementwise, reading))
        and all(plan.of_operand(one, inner, wanted) for one in inner.inputs)
    ):
        plan.again.add(id(node))


def rule_3_reshape_of_elementwise(node: Node, plan: Plan) -> None:
    if node.operation == "reshape" and plan.readers[id(node)] and plan.whole[id(node.inputs[0])]:
        plan.propose(node.inputs[0], Wanted(None, plan.shape_of(node)))


class Sinking:
    """The pass."""

    name = "sinking"

    def __init__(self) -> None:
        self.rules: dict[str, Callable[[Node, Plan], None]] = {
            rule.__name__: rule
            for rule in (rule_1_view_of_elementwise, rule_2_view_of_cheap, rule_3_reshape_of_elementwise)
        }

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        if not config.fuse_dimshuffle:
            return graph
        plan = Plan(graph)
        for node in reversed(plan.nodes):
            if id(node) in plan.wanted and is_elementwise(node):
                for one in node.inputs:
                    how = plan.of_operand(one, node, plan.wanted[id(node)])
                    if how is not None:
                        plan.propose(one, how)
            else:
                for rule in self.rules.values():
                    rule(node, plan)
        return made_again(graph, plan) if plan.wanted or plan.again else graph


def made_again(graph: Graph, plan: Plan) -> Graph:
    """The graph with every node as it is wanted."""
    new: dict[int, Node] = {}
    for node in plan.nodes:
        inputs = [new[id(one)] for one in node.inputs]
        wanted = plan.wanted.get(id(node))
        if wanted is not None and is_elementwise(node):
            new[id(node)] = as_wanted(node, [new[id(one)] for one in node.inputs], wanted, plan)
        elif node.operation == "reshape" and (wanted is not None or id(node.inputs[0]) in plan.wanted):
            new[id(node)] = reshaped(inputs[0], plan.shape_of(node))
        elif node.operation == "view" and id(node.inputs[0]) in plan.wanted:
            new[id(node)] = behind_repeats(inputs[0], plan.of_view(node).shape)
        elif id(node) in plan.again:
            inner, (index_map, shape) = node.inputs[0], plan.of_view(node)
            narrow = Wanted(*before_repeats(index_map, shape))
            result = as_wanted(inner, [new[id(one)] for one in inner.inputs], narrow, plan)
            new[id(node)] = behind_repeats(result, shape)
        elif wanted is not None:
            new[id(node)] = construct.view(inputs[0], *plan.of_view(node))
        elif all(one is other for one, other in zip(inputs, node.inputs, strict=True)):
            new[id(node)] = node
        else:
            new[id(node)] = node.with_inputs(inputs)
    return rebuilt(graph, new)


def as_wanted(node: Node, inputs: list[Node], wanted: Wanted, plan: Plan) -> Node:
    """An elementwise node as it is wanted, from its new operands."""
    operands = [plan.shown(one, built, node, wanted) for one, built in zip(node.inputs, inputs, strict=True)]
    return Node(node.operation, operands, node.dtype, wanted.shape, node.options)


sinking = Sinking()
