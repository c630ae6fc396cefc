"""Local simplification of views, reshapes and concatenations; `view_motion` moves views through operations.

1. A view of a view becomes one view, and an identity view becomes its operand.
2. A reshape of a reshape becomes one reshape.
3. A reshape that only inserts or removes dimensions of extent 1 becomes a view.
4. An elementwise operation of explicitly broadcast operands reads them before the broadcast: it broadcasts them itself.
5. An elementwise operation whose operands are all broadcast runs once before the broadcast.
6. A concatenation of one array becomes that array; nested concatenations along the same axis become one.
7. A reshape of a view that only inserts or removes dimensions of extent 1 becomes a reshape of the array.
8. A reshape that neither merges nor splits dimensions, as of 4 x 6 to 8 x 3, becomes a view of one that merges all.
"""

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.elementwise_ops import SCALARS
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import product, same, same_shape
from jitkernels.compiler.passes.index_maps import broadcast_dimensions, without_broadcast
from jitkernels.compiler.passes.matchers import broadcast_like, common_shape
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass

view_simplify_pass = RewritePass("view_simplify")


@view_simplify_pass.rule("view")
def rule_1_view_of_view(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    if inner.operation == "view" or builder.is_identity(inner.shape, node.options["map"], node.shape):
        return builder.view(inner, node.options["map"], node.shape)
    return None


@view_simplify_pass.rule("reshape")
def rule_2_reshape_of_reshape(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    return node.with_inputs(inner.inputs) if inner.operation == "reshape" else None


@view_simplify_pass.rule("reshape")
def rule_3_reshape_of_ones(node: Node, context: MatchContext) -> Node | None:
    inner = node.inputs[0]
    source_axes = [i for i, extent in enumerate(inner.shape) if not same(extent, 1)]
    target_axes = [i for i, extent in enumerate(node.shape) if not same(extent, 1)]
    if not same_shape([inner.shape[i] for i in source_axes], [node.shape[i] for i in target_axes]):
        return None
    to = dict(zip(source_axes, target_axes, strict=True))
    index_map = tuple((0, ((to[i], 1),) if i in to else ()) for i in range(inner.ndim))
    return builder.view(inner, index_map, node.shape)


def before_broadcast(node: Node) -> Node:
    """The operand of a broadcasting view without the broadcast; any other node itself."""
    if node.operation != "view":
        return node
    index_map, shape = node.options["map"], node.shape
    if not broadcast_dimensions(index_map, shape):
        return node
    return builder.view(node.inputs[0], *without_broadcast(index_map, shape))


@view_simplify_pass.rule(*SCALARS)
def rule_4_operands_before_broadcast(node: Node, context: MatchContext) -> Node | None:
    operands = tuple(map(before_broadcast, node.inputs))
    if all(new_operand is operand for new_operand, operand in zip(operands, node.inputs, strict=True)):
        return None
    shape = common_shape(operand.shape for operand in operands)
    return node.with_inputs(operands) if shape is not None and same_shape(shape, node.shape) else None


@view_simplify_pass.rule(*SCALARS, "cast")
def rule_5_computed_before_broadcast(node: Node, context: MatchContext) -> Node | None:
    operands = tuple(map(before_broadcast, node.inputs))
    if all(new_operand is operand for new_operand, operand in zip(operands, node.inputs, strict=True)):
        return None
    shape = common_shape(operand.shape for operand in operands)
    if shape is None or same_shape(shape, node.shape):
        return None
    return broadcast_like(Node(node.operation, operands, node.dtype, shape, node.options), node.shape)


@view_simplify_pass.rule("concatenate")
def rule_6_concatenations(node: Node, context: MatchContext) -> Node | None:
    if len(node.inputs) == 1:
        return node.inputs[0]
    parts: list[Node] = []
    for operand in node.inputs:
        inner = operand.operation == node.operation and operand.options == node.options
        parts.extend(operand.inputs if inner and context.has_one_use(operand) else [operand])
    return node.with_inputs(parts) if len(parts) > len(node.inputs) else None


@view_simplify_pass.rule("reshape")
def rule_7_reshape_of_view_with_ones(node: Node, context: MatchContext) -> Node | None:
    view = node.inputs[0]
    if view.operation != "view":
        return None
    (array,), index_map = view.inputs, view.options["map"]
    wide = [entry for entry, extent in zip(index_map, array.shape, strict=True) if not same(extent, 1)]
    shown = [dim for dim, extent in enumerate(view.shape) if not same(extent, 1)]
    sizes = [extent for extent in array.shape if not same(extent, 1)]
    if len(wide) != len(shown) or not same_shape(sizes, [view.shape[dim] for dim in shown]):
        return None
    in_order = (
        same(start, 0) and len(steps) == 1 and steps[0][0] == dim and same(steps[0][1], 1)
        for (start, steps), dim in zip(wide, shown, strict=True)
    )
    return node.with_inputs((array,)) if all(in_order) else None


@view_simplify_pass.rule("reshape")
def rule_8_reshape_by_merging_all(node: Node, context: MatchContext) -> Node | None:
    array = node.inputs[0]
    if array.operation == "input" or builder.map_of_split(node.shape, array.shape) is not None:
        return None
    size = product(array.shape)
    parts = builder.map_of_split((size,), node.shape)
    if node.ndim < 2 or parts is None:
        return None
    return builder.view(Node("reshape", (array,), node.dtype, (size,)), parts, node.shape)
