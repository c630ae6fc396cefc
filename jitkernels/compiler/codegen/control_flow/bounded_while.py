"""Loops that do not count, but get somewhere: an int moves in each round, up to what no round changes.

As ``while j >= 0 and a[j] > x: ...; j -= 1`` or ``while d * d <= n: ...; d += 1``. How far the int has come tells how
many rounds there were, so the loop around can take them from its patience.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jitkernels.graph import leaving
from jitkernels.graph.extents import is_moving
from jitkernels.graph.ir import Node

Around = Mapping[int, tuple[Node, Any]]
"""By the ids of a region's inputs, what they are around it: a node, and what that region's inputs are."""
UP = {"less": 1, "less_equal": 1, "greater": -1, "greater_equal": -1}


def moved(loop: Node) -> tuple[int, bool] | None:
    """The number of a carried int that bounds the rounds of a loop that does not count, and whether it goes up."""
    body, condition, carried = loop.options["body"], loop.options["condition"], loop.options["carried"]
    if loop.options["counts"]:
        return None
    kept = {id(one) for one in condition.inputs[carried:]}
    places = {id(one): place for place, one in enumerate(condition.inputs[:carried])}
    for asked, around in _asked(condition.outputs[0], {}):
        if asked.operation not in UP:
            continue
        for node, other, sign in ((0, 1, 1), (1, 0, -1)):
            end, where = resolved(asked.inputs[other], around)
            if not (id(end) in kept or end.operation == "constant" or _is_fixed(end)):
                continue
            number, where = resolved(asked.inputs[node], around)
            up = sign * UP[asked.operation]
            if number.operation == "multiply" and up > 0:  # of an int with itself
                factors = [resolved(one, where)[0] for one in number.inputs]
                number = factors[0] if factors[0] is factors[1] else number
            place = places.get(id(number))
            if (
                place is not None
                and number.dtype == "int64"
                and _moves(loop, body.outputs[place], body.inputs[place], {}, up)
            ):
                return place, up > 0
    return None


def _is_fixed(node: Node) -> bool:
    return node.operation == "extent" and not is_moving(node.options["extent"])


def resolved(node: Node, around: Around) -> tuple[Node, Around]:
    """What a node of a region is, where it is computed."""
    while id(node) in around:
        node, around = around[id(node)]
    return node, around


def _asked(node: Node, around: Around) -> Iterator[tuple[Node, Around]]:
    """All that has to hold for a condition to hold."""
    node, around = resolved(node, around)
    if node.operation != "item" or node.inputs[0].operation != "branch":
        yield node, around
        return
    branch, index = node.inputs[0], node.options["index"]
    if leaving.is_constant(branch.options["no"].outputs[index], value=False):  # ``one and other``
        yield from _asked(branch.inputs[0], around)
        yield from _asked(branch.options["yes"].outputs[index], inside(branch, "yes", around))


def inside(branch: Node, name: str, around: Around) -> Around:
    """What the inputs of one side of a branch are."""
    region = branch.options[name]
    return {id(one): (outer, around) for one, outer in zip(region.inputs, branch.inputs[1:], strict=True)}


def _moves(loop: Node, node: Node, start: Node, around: Around, sign: int) -> bool:
    """Whether a round moves an int by a step of a sign, unless it is the last one."""
    node, around = resolved(node, around)
    if node.operation in ("add", "subtract"):
        one, other = (resolved(part, around)[0] for part in node.inputs)
        if one is not start or other.operation != "constant":
            return False
        step = other.options["value"] * (1 if node.operation == "add" else -1)
        return bool(step * sign > 0)
    if node.operation != "item" or node.inputs[0].operation != "branch":
        return False
    branch, index = node.inputs[0], node.options["index"]
    return all(
        (not around and leaving.is_left(loop, branch, name))
        or _moves(loop, branch.options[name].outputs[index], start, inside(branch, name, around), sign)
        for name in ("yes", "no")
    )
