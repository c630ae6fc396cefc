"""Store-to-load forwarding of array updates, and elimination of dead and redundant updates.

1. An update of a whole array becomes the value.
2. A view of the updated region becomes a view of the value, if the update has one use: else it reads the memory that
   the update writes, and the value is not computed twice.
3. A view that is disjoint from the updated region becomes a view of the array before the update, if the update has one
   use: else the old array would have to outlive it.
4. An update that a later update overwrites is dead, if nothing else reads it.
5. An update that writes a region's own content becomes the array.
6. An update of no elements becomes the array.
"""

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.compiler.passes.index_maps import are_disjoint, is_injective, is_same_region, within
from jitkernels.compiler.passes.matchers import broadcast_like
from jitkernels.compiler.passes.pattern_rewriter import MatchContext, RewritePass

update_forwarding_pass = RewritePass("update_forwarding")


@update_forwarding_pass.rule("update")
def rule_1_update_of_all(node: Node, context: MatchContext) -> Node | None:
    array, value = node.inputs
    index_map, extents = node.options["map"], node.options["extents"]
    if builder.is_identity(array.shape, index_map, extents):
        return broadcast_like(value, node.shape)
    return None


@update_forwarding_pass.rule("view")
def rule_2_view_of_what_was_written(node: Node, context: MatchContext) -> Node | None:
    update = node.inputs[0]
    if update.operation != "update" or not context.has_one_use(update):
        return None
    written, extents = update.options["map"], update.options["extents"]
    value = broadcast_like(update.inputs[1], extents)
    if value is None or not is_injective(written, extents):
        return None
    if is_same_region(node.options["map"], node.shape, written, extents):
        return value
    inside = within(node.options["map"], node.shape, written, extents)
    return None if inside is None else builder.view(value, inside, node.shape)


@update_forwarding_pass.rule("view")
def rule_3_view_beside(node: Node, context: MatchContext) -> Node | None:
    update = node.inputs[0]
    if update.operation != "update" or not context.has_one_use(update):
        return None
    if not are_disjoint(node.options["map"], node.shape, update.options["map"], update.options["extents"]):
        return None
    return builder.view(update.inputs[0], node.options["map"], node.shape)


@update_forwarding_pass.rule("update")
def rule_4_written_over(node: Node, context: MatchContext) -> Node | None:
    first, value = node.inputs
    if first.operation != "update" or not context.has_one_use(first):
        return None
    regions = first.options["map"], first.options["extents"], node.options["map"], node.options["extents"]
    if not is_same_region(*regions) and (within(*regions) is None):
        return None
    return node.with_inputs((first.inputs[0], value))


@update_forwarding_pass.rule("update")
def rule_5_written_as_it_is(node: Node, context: MatchContext) -> Node | None:
    array, value = node.inputs
    if value.operation != "view" or value.inputs[0] is not array:
        return None
    same_region = is_same_region(value.options["map"], value.shape, node.options["map"], node.options["extents"])
    return array if same_region else None


@update_forwarding_pass.rule("update")
def rule_6_update_of_nothing(node: Node, context: MatchContext) -> Node | None:
    return node.inputs[0] if any(same(extent, 0) for extent in node.options["extents"]) else None
