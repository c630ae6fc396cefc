"""Loops that are left in the middle: what ends them is a jump again where a round ends in a branch that sets it."""

from jitkernels.graph.ir import Graph, Node


def ending(condition: Graph) -> set[int]:
    """The numbers of the parameters of a loop that end it if they are true."""
    return {one.options["index"] for one in _makes(condition.outputs[0], truth=False)}


def _makes(node: Node, *, truth: bool) -> list[Node]:
    """The parameters that make a condition true, or false, if they are true."""
    if node.operation == "parameter":
        return [node] if truth else []
    if node.operation == "logical_not":
        return _makes(node.inputs[0], truth=not truth)
    if node.operation == "item" and node.inputs[0].operation == "branch":
        branch, index = node.inputs[0], node.options["index"]
        # ``one or other`` is true where one is, ``one and other`` false where one is not.
        side = branch.options["yes" if truth else "no"].outputs[index]
        if is_constant(side, value=truth):
            return _makes(branch.inputs[0], truth=truth)
    return []


def is_constant(node: Node, *, value: bool) -> bool:
    """Whether a node is this bool."""
    return node.operation == "constant" and node.options["value"] is value


def last_branch(loop: Node, order: list[Node]) -> Node | None:
    """The branch with which each round of a loop ends, if one of its sides ends the loop; None if there is none.

    `order`: the nodes of a round, as they are computed.
    """
    if not order:
        return None
    body = loop.options["body"]
    results = [node for node in order if node.operation == "item"]
    computed = [node for node in order if node.operation not in ("item", "constant")]
    branch = computed[-1] if computed else None
    if branch is None or branch.operation != "branch" or branch in body.outputs:
        return None
    if any(
        node.inputs[0] is branch and node not in body.outputs and node not in body.checks for node in results
    ):
        return None
    return branch if any(is_left(loop, branch, name) for name in ("yes", "no")) else None


def is_left(loop: Node, branch: Node, name: str) -> bool:
    """Whether a loop ends after one of the sides of the branch with which its rounds end."""
    first, stops = 1 if loop.options["counts"] else 0, ending(loop.options["condition"])
    side = branch.options[name]
    return any(
        first + i in stops
        and output.operation == "item"
        and output.inputs[0] is branch
        and is_constant(side.outputs[output.options["index"]], value=True)
        for i, output in enumerate(loop.options["body"].outputs)
    )
