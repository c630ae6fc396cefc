"""Bound the trip count of a ``while`` loop by a loop-carried int that moves monotonically towards a loop invariant.

As in ``while j >= 0 and a[j] > x: ...; j -= 1`` or ``while d * d <= n: ...; d += 1``. The distance that the int has
covered is the number of iterations, so the enclosing loop can subtract them from its signal-poll countdown.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jitkernels.compiler.ir.graph import Node, has_value
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant
from jitkernels.compiler.transforms import early_exits

Around = Mapping[Node, tuple[Node, Any]]
"""By region parameter: the captured node in the enclosing region, and that region's own mapping."""
UP = {"less": 1, "less_equal": 1, "greater": -1, "greater_equal": -1}


def monotonic_counter(loop: Node) -> tuple[int, bool] | None:
    """Find the loop-carried int that bounds the trip count of a ``while`` loop: its position, and whether it increases.

    None if the loop is a counted one, or no carried int moves monotonically towards a loop invariant.
    """
    body, condition, carried = loop.options["body"], loop.options["condition"], loop.options["carried"]
    if loop.options["counts"]:
        return None
    invariants = set(condition.inputs[carried:])
    carried_positions = {parameter: position for position, parameter in enumerate(condition.inputs[:carried])}
    for comparison, around in _conjuncts(condition.outputs[0], {}):
        if comparison.operation not in UP:
            continue
        for operand_index, other, sign in ((0, 1, 1), (1, 0, -1)):
            end, scope = resolve_parameter(comparison.inputs[other], around)
            if not (end in invariants or end.operation == "constant" or _is_fixed(end)):
                continue
            carried_value, scope = resolve_parameter(comparison.inputs[operand_index], around)
            up = sign * UP[comparison.operation]
            if carried_value.operation == "multiply" and up > 0:  # of an int with itself
                factors = [resolve_parameter(operand, scope)[0] for operand in carried_value.inputs]
                carried_value = factors[0] if factors[0] is factors[1] else carried_value
            position = carried_positions.get(carried_value)
            if (
                position is not None
                and carried_value.dtype == "int64"
                and _steps_by_sign(loop, body.outputs[position], body.inputs[position], {}, up)
            ):
                return position, up > 0
    return None


def _is_fixed(node: Node) -> bool:
    return node.operation == "extent" and not is_loop_variant(node.options["extent"])


def resolve_parameter(node: Node, around: Around) -> tuple[Node, Around]:
    """Follow a region parameter to the node that defines it in an enclosing region, and that node's scope."""
    while node in around:
        node, around = around[node]
    return node, around


def _conjuncts(node: Node, around: Around) -> Iterator[tuple[Node, Around]]:
    """Yield every condition that must hold for `node` to be true."""
    node, around = resolve_parameter(node, around)
    if node.operation != "item" or node.inputs[0].operation != "branch":
        yield node, around
        return
    branch, index = node.inputs[0], node.options["index"]
    if has_value(branch.options["no"].outputs[index], False):  # ``one and other``
        yield from _conjuncts(branch.inputs[0], around)
        yield from _conjuncts(branch.options["yes"].outputs[index], branch_scope(branch, "yes", around))


def branch_scope(branch: Node, name: str, around: Around) -> Around:
    """Map the parameters of one side of a branch to the operands that the branch captures."""
    region = branch.options[name]
    return {parameter: (outer, around) for parameter, outer in zip(region.inputs, branch.inputs[1:], strict=True)}


def _steps_by_sign(loop: Node, node: Node, start: Node, around: Around, sign: int) -> bool:
    """Return whether an iteration adds a constant of a sign to `start`, unless it is the last iteration."""
    node, around = resolve_parameter(node, around)
    if node.operation in ("add", "subtract"):
        base, increment = (resolve_parameter(part, around)[0] for part in node.inputs)
        if base is not start or increment.operation != "constant":
            return False
        step = increment.options["value"] * (1 if node.operation == "add" else -1)
        return bool(step * sign > 0)
    if node.operation != "item" or node.inputs[0].operation != "branch":
        return False
    branch, index = node.inputs[0], node.options["index"]
    return all(
        (not around and early_exits.leaves_loop(loop, branch, name))
        or _steps_by_sign(loop, branch.options[name].outputs[index], start, branch_scope(branch, name, around), sign)
        for name in ("yes", "no")
    )
