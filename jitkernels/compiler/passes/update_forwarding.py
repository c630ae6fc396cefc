"""Updates of arrays: what of writing and reading back is not needed.

1. An update of all of an array is the value.
2. A view of what was just written is of the value, if nothing else reads the update: else it is read where it is
   written, and the value is not computed again.
3. A view that shows nothing of what was written is of the array before it, if nothing else reads the update: else
   the old array would have to outlive it.
4. An update that a later one writes over is not made, if nothing else reads it.
5. Writing to a region what is there changes nothing.
6. An update of no elements changes nothing.
"""

from jitkernels.graph import construct
from jitkernels.graph.extents import same
from jitkernels.graph.ir import Node
from jitkernels.graph.passes.matching import shaped
from jitkernels.graph.passes.regions import are_apart, is_same_region, shows_each_once, within
from jitkernels.graph.passes.rewriting import Facts, Rewriting

updates = Rewriting("updates")


@updates.rule("update")
def rule_1_update_of_all(node: Node, facts: Facts) -> Node | None:
    array, value = node.inputs
    index_map, extents = node.options["map"], node.options["extents"]
    if construct.is_identity(array.shape, index_map, extents):
        return shaped(value, node.shape)
    return None


@updates.rule("view")
def rule_2_view_of_what_was_written(node: Node, facts: Facts) -> Node | None:
    update = node.inputs[0]
    if update.operation != "update" or not facts.is_read_once(update):
        return None
    written, extents = update.options["map"], update.options["extents"]
    value = shaped(update.inputs[1], extents)
    if value is None or not shows_each_once(written, extents):
        return None
    if is_same_region(node.options["map"], node.shape, written, extents):
        return value
    inside = within(node.options["map"], node.shape, written, extents)
    return None if inside is None else construct.view(value, inside, node.shape)


@updates.rule("view")
def rule_3_view_beside(node: Node, facts: Facts) -> Node | None:
    update = node.inputs[0]
    if update.operation != "update" or not facts.is_read_once(update):
        return None
    if not are_apart(node.options["map"], node.shape, update.options["map"], update.options["extents"]):
        return None
    return construct.view(update.inputs[0], node.options["map"], node.shape)


@updates.rule("update")
def rule_4_written_over(node: Node, facts: Facts) -> Node | None:
    first, value = node.inputs
    if first.operation != "update" or not facts.is_read_once(first):
        return None
    regions = first.options["map"], first.options["extents"], node.options["map"], node.options["extents"]
    if not is_same_region(*regions) and (within(*regions) is None):
        return None
    return node.with_inputs((first.inputs[0], value))


@updates.rule("update")
def rule_5_written_as_it_is(node: Node, facts: Facts) -> Node | None:
    array, value = node.inputs
    if value.operation != "view" or value.inputs[0] is not array:
        return None
    same_region = is_same_region(
        value.options["map"], value.shape, node.options["map"], node.options["extents"]
    )
    return array if same_region else None


@updates.rule("update")
def rule_6_update_of_nothing(node: Node, facts: Facts) -> Node | None:
    return node.inputs[0] if any(same(extent, 0) for extent in node.options["extents"]) else None
