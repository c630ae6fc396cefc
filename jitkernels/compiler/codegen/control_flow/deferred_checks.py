"""Checks of floats in a loop, such as those of `math.sqrt`, are made for all its iterations at once, behind it.

LLVM vectorizes no loop that may be left in the middle. Iterations behind one that fails are harmless: a call that bails
out runs again in Python, and floats that are out of range neither trap nor become indices.
"""

from jitkernels.compiler.ir.graph import Node, has_value
from jitkernels.compiler.ir.regions import walk_nodes
from jitkernels.compiler.schedule.region_stages import Body


def may_defer(loop: Node, body: Body) -> bool:
    """Whether a loop runs an innermost body a known number of times, and makes no ints of floats."""
    if not loop.options["counts"] or body.groups or not has_value(loop.options["condition"].outputs[0], 1):
        return False
    return not any(
        node.operation == "loop" or (node.inputs and _is_float(node.inputs[0]) and node.dtype[0] in "iu")
        for node in walk_nodes(loop.options["body"])
    )


def is_of_floats(check: Node) -> bool:
    """Whether a check is a condition of floats alone."""
    if check.dtype == "bool" and all(node.dtype == "bool" for node in check.inputs):
        return bool(check.inputs) and all(map(is_of_floats, check.inputs))
    return bool(check.inputs) and all(map(_is_float, check.inputs))


def _is_float(node: Node) -> bool:
    return node.dtype.startswith(("float", "complex"))
