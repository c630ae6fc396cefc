"""View motion: views of results become views of the operands, of inputs in the end, where they cost nothing.

1. A view of an elementwise node with one use becomes the node of views of its operands: transposes cancel, and only the
   elements that the view selects are computed. Broadcasts stay behind the operation; so do overlapping windows, and
   transposes that a matrix product reads: it takes transposed operands.
2. A view, read by elementwise nodes, of a node that costs a few additions and reads one input recomputes that node from
   a view of the input.
3. A reshape of elementwise nodes with one use becomes the nodes of reshaped operands, if these are contiguous.

Chains move at once: a backward sweep decides the view that each node's only user requests, a forward sweep builds the
nodes.
"""

from typing import Any, NamedTuple

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.compiler.ir.graph import Graph, Node, readers, rebuild_roots
from jitkernels.compiler.ir.symbolic_dims import Number, same_shape
from jitkernels.compiler.passes.index_maps import (
    broadcast_again,
    is_permutation,
    operand_map,
    overlaps,
    without_broadcast,
)
from jitkernels.compiler.passes.matchers import is_elementwise
from jitkernels.compiler.passes.pattern_rewriter import GraphPass, use_counts

MAX_DUPLICATED_COST = 2.0
"""In additions: a node of at most this cost is computed twice rather than stored."""


class Requested(NamedTuple):
    """What a node's only user requests of it: a view by a map, or a reshape where `map` is None."""

    map: Any
    shape: tuple[Number, ...]


class MotionPlan:
    """What one run of the pass knows about a graph, and its decisions: `requested` views, nodes to be `recomputed`."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = list(graph)
        self.counts = use_counts(graph, self.nodes)
        self.readers = readers(self.nodes)
        self.requested: dict[Node, Requested] = {}
        self.recomputed: set[Node] = set()
        self.whole: dict[Node, bool] = {}
        for node in self.nodes:
            self.whole[node] = node.operation != "view" and (
                not is_elementwise(node)
                or all(
                    operand.ndim == 0 or (self.whole[operand] and same_shape(operand.shape, node.shape))
                    for operand in node.inputs
                )
            )

    def propose(self, node: Node, requested: Requested) -> None:
        """Let a node be built as its only user requests it, if that is possible."""
        if self.counts[node] != 1 or node.ndim == 0:
            return
        if requested.map is None:
            if same_shape(node.shape, requested.shape):
                return
        elif builder.is_identity(node.shape, requested.map, requested.shape):
            return
        forwards_request = node.operation == ("reshape" if requested.map is None else "view")
        if forwards_request or (
            is_elementwise(node) and all(self.of_operand(operand, node, requested) for operand in node.inputs)
        ):
            self.requested[node] = requested

    def of_operand(self, operand: Node, node: Node, requested: Requested) -> Requested | None:
        """What a node that is `requested` so requests of its operand; None where calls may broadcast differently."""
        if requested.map is None:
            return requested
        result = operand_map(operand.shape, node.shape, requested.map, requested.shape)
        return None if result is None else Requested(*result)

    def of_view(self, node: Node) -> Requested:
        """The view that a view node selects of its operand: its own, composed with what its user requests."""
        requested = self.requested.get(node)
        if requested is None:
            return Requested(node.options["map"], node.shape)
        return Requested(builder.composed(node.options["map"], requested.map), requested.shape)

    def shape_of(self, node: Node) -> tuple[Number, ...]:
        """The shape of a reshape: its own, or the one that its user requests."""
        requested = self.requested.get(node)
        return node.shape if requested is None else requested.shape

    def shown(self, operand: Node, built: Node, node: Node, requested: Requested) -> Node:
        """The operand of a requested node: built so already, or by a view or reshape of `built`."""
        operand_request = self.of_operand(operand, node, requested)
        if operand in self.requested or operand.ndim == 0 or operand_request is None:
            return built
        return (
            reshaped(built, operand_request.shape)
            if operand_request.map is None
            else builder.view(built, operand_request.map, operand_request.shape)
        )


def reshaped(node: Node, shape: tuple[Number, ...]) -> Node:
    return node if same_shape(node.shape, shape) else Node("reshape", (node,), node.dtype, shape)


def rule_1_view_of_elementwise(node: Node, plan: MotionPlan) -> None:
    if node.operation != "view":
        return
    index_map, shape = plan.of_view(node)
    for_product = any(reader.operation == "matmul" for reader in plan.readers[node])
    if not overlaps(index_map) and not (for_product and is_permutation(node)):
        plan.propose(node.inputs[0], Requested(*without_broadcast(index_map, shape)))


def rule_2_view_of_cheap(node: Node, plan: MotionPlan) -> None:
    inner = node.inputs[0] if node.operation == "view" else node
    if inner is node or not is_elementwise(inner) or node in plan.requested or inner in plan.requested:
        return
    cost = SCALARS[inner.operation].cost if inner.operation in SCALARS else 1.0
    arrays = [operand for operand in inner.inputs if operand.ndim]
    sources = [array.inputs[0] if array.operation == "view" else array for array in arrays]
    if cost > MAX_DUPLICATED_COST or len(arrays) != 1 or sources[0].operation != "input":
        return
    users = plan.readers[node]
    index_map, shape = plan.of_view(node)
    requested = Requested(*without_broadcast(index_map, shape))
    if (
        users
        and all(map(is_elementwise, users))
        and all(plan.of_operand(operand, inner, requested) for operand in inner.inputs)
    ):
        plan.recomputed.add(node)


def rule_3_reshape_of_elementwise(node: Node, plan: MotionPlan) -> None:
    if node.operation == "reshape" and plan.readers[node] and plan.whole[node.inputs[0]]:
        plan.propose(node.inputs[0], Requested(None, plan.shape_of(node)))


def _run(graph: Graph, config: JitConfig, rules: dict[str, Any]) -> Graph:
    if not config.fuse_dimshuffle:
        return graph
    plan = MotionPlan(graph)
    for node in reversed(plan.nodes):
        if node in plan.requested and is_elementwise(node):
            for operand in node.inputs:
                operand_request = plan.of_operand(operand, node, plan.requested[node])
                if operand_request is not None:
                    plan.propose(operand, operand_request)
        else:
            for rule in rules.values():
                rule(node, plan)
    return apply_plan(graph, plan) if plan.requested or plan.recomputed else graph


def apply_plan(graph: Graph, plan: MotionPlan) -> Graph:
    """The graph with every node built as the plan requests it."""
    new: dict[Node, Node] = {}
    for node in plan.nodes:
        inputs = [new[operand] for operand in node.inputs]
        requested = plan.requested.get(node)
        if requested is not None and is_elementwise(node):
            new[node] = build_requested(node, inputs, requested, plan)
        elif node.operation == "reshape" and (requested is not None or node.inputs[0] in plan.requested):
            new[node] = reshaped(inputs[0], plan.shape_of(node))
        elif node.operation == "view" and node.inputs[0] in plan.requested:
            new[node] = broadcast_again(inputs[0], plan.of_view(node).shape)
        elif node in plan.recomputed:
            inner, (index_map, shape) = node.inputs[0], plan.of_view(node)
            narrow = Requested(*without_broadcast(index_map, shape))
            result = build_requested(inner, [new[operand] for operand in inner.inputs], narrow, plan)
            new[node] = broadcast_again(result, shape)
        elif requested is not None:
            new[node] = builder.view(inputs[0], *plan.of_view(node))
        else:
            new[node] = node.replace_inputs(inputs)
    return rebuild_roots(graph, new.__getitem__)


def build_requested(node: Node, inputs: list[Node], requested: Requested, plan: MotionPlan) -> Node:
    """An elementwise node as it is requested, from its new operands."""
    operands = [plan.shown(operand, built, node, requested) for operand, built in zip(node.inputs, inputs, strict=True)]
    return Node(node.operation, operands, node.dtype, requested.shape, node.options)


view_motion_pass = GraphPass(
    "view_motion", _run, rule_1_view_of_elementwise, rule_2_view_of_cheap, rule_3_reshape_of_elementwise
)
