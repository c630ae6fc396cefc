"""Early exits of loops: recover a jump where an iteration ends in a branch that sets the exit flag."""

from jitkernels.compiler.ir.graph import Graph, Node, has_value


def ending(condition: Graph) -> set[int]:
    """The indices of loop parameters that end the loop if they are true."""
    return {flag.options["index"] for flag in _makes(condition.outputs[0], truth=False)}


def _makes(node: Node, *, truth: bool) -> list[Node]:
    """The parameters whose truth makes a condition have the value `truth`."""
    if node.operation == "parameter":
        return [node] if truth else []
    if node.operation == "logical_not":
        return _makes(node.inputs[0], truth=not truth)
    if node.operation == "item" and node.inputs[0].operation == "branch":
        branch, index = node.inputs[0], node.options["index"]
        # ``one or other`` is true where one is, ``one and other`` false where one is not.
        side = branch.options["yes" if truth else "no"].outputs[index]
        if has_value(side, truth):
            return _makes(branch.inputs[0], truth=truth)
    return []


def last_branch(loop: Node, order: list[Node]) -> Node | None:
    """The branch with which every iteration ends, if one of its sides leaves the loop; None if there is none.

    `order`: the nodes of an iteration in order of computation.
    """
    if not order:
        return None
    body = loop.options["body"]
    results = [node for node in order if node.operation == "item"]
    computed = [node for node in order if node.operation not in ("item", "constant")]
    branch = computed[-1] if computed else None
    if branch is None or branch.operation != "branch" or branch in body.outputs:
        return None
    if any(node.inputs[0] is branch and node not in body.outputs and node not in body.checks for node in results):
        return None
    return branch if any(leaves_loop(loop, branch, name) for name in ("yes", "no")) else None


def leaves_loop(loop: Node, branch: Node, name: str) -> bool:
    """Return whether a side of an iteration's last branch leaves the loop."""
    first, stops = 1 if loop.options["counts"] else 0, ending(loop.options["condition"])
    side = branch.options[name]
    return any(
        first + i in stops
        and output.operation == "item"
        and output.inputs[0] is branch
        and has_value(side.outputs[output.options["index"]], True)
        for i, output in enumerate(loop.options["body"].outputs)
    )
