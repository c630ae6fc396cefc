"""Views one by one; `sinking` moves them.

1. A view of a view is one view, and one that shows all as it is is nothing.
2. A reshape of a reshape is one.
3. A reshape that does nothing but add or take away dimensions of one element is a view.
4. An elementwise operation reads operands that are broadcast before they are: it broadcasts them itself.
5. What is broadcast in all operands is computed once, and broadcast then.
6. A concatenation of one array is that array, and one of concatenations along the same axis is one.
"""

from jitkernels.graph import construct
from jitkernels.graph.extents import same, same_shape
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.maps import before_repeats, repeated_dimensions
from jitkernels.graph.passes.matching import common_shape, shaped
from jitkernels.graph.passes.rewriting import Facts, Rewriting
from jitkernels.graph.scalars import SCALARS

views = Rewriting("views")


@views.rule("view")
def rule_1_view_of_view(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    if inner.operation == "view" or construct.is_identity(inner.shape, node.options["map"], node.shape):
        return construct.view(inner, node.options["map"], node.shape)
    return None


@views.rule("reshape")
def rule_2_reshape_of_reshape(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    return node.with_inputs(inner.inputs) if inner.operation == "reshape" else None


@views.rule("reshape")
def rule_3_reshape_of_ones(node: Node, facts: Facts) -> Node | None:
    inner = node.inputs[0]
    here = [i for i, extent in enumerate(inner.shape) if not same(extent, 1)]
    there = [i for i, extent in enumerate(node.shape) if not same(extent, 1)]
    if not same_shape([inner.shape[i] for i in here], [node.shape[i] for i in there]):
        return None
    to = dict(zip(here, there, strict=True))
    index_map = tuple((0, ((to[i], 1),) if i in to else ()) for i in range(inner.ndim))
    return construct.view(inner, index_map, node.shape)


def before_broadcast(node: Node) -> Node:
    """What a view that repeats elements repeats; any other node itself."""
    if node.operation != "view":
        return node
    index_map, shape = node.options["map"], node.shape
    if not repeated_dimensions(index_map, shape):
        return node
    return construct.view(node.inputs[0], *before_repeats(index_map, shape))


@views.rule(*SCALARS)
def rule_4_operands_before_broadcast(node: Node, facts: Facts) -> Node | None:
    operands = tuple(map(before_broadcast, node.inputs))
    if all(one is other for one, other in zip(operands, node.inputs, strict=True)):
        return None
    shape = common_shape(one.shape for one in operands)
    return node.with_inputs(operands) if shape is not None and same_shape(shape, node.shape) else None


@views.rule(*SCALARS, "cast")
def rule_5_computed_before_broadcast(node: Node, facts: Facts) -> Node | None:
    operands = tuple(map(before_broadcast, node.inputs))
    if all(one is other for one, other in zip(operands, node.inputs, strict=True)):
        return None
    shape = common_shape(one.shape for one in operands)
    if shape is None or same_shape(shape, node.shape):
        return None
    return shaped(Node(node.operation, operands, node.dtype, shape, node.options), node.shape)


@views.rule("concatenate")
def rule_6_concatenations(node: Node, facts: Facts) -> Node | None:
    if len(node.inputs) == 1:
        return node.inputs[0]
    parts: list[Node] = []
    for one in node.inputs:
        inner = one.operation == node.operation and one.options == node.options
        parts.extend(one.inputs if inner and facts.is_read_once(one) else [one])
    return node.with_inputs(parts) if len(parts) > len(node.inputs) else None
