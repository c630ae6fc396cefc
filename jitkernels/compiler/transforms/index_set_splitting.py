"""Elements that a counted loop reads in each round, and writes in one round alone: where the count meets their index.

``for j in range(n): d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` writes to ``d[i, k]`` for no j but k. Before that round
and behind it the element can be read once, so that LLVM takes several rounds at once: index-set splitting.
"""

from collections.abc import Collection

from jitkernels.graph.flows import is_direct
from jitkernels.graph.ir import Node
from jitkernels.graph.regions import regions_of
from jitkernels.records import record


@record
class Conflict:
    """The index that the count meets, a number from around the loop, and reads that are the same in other rounds."""

    index: Node
    reads: tuple[Node, ...]


def of(loop: Node, moving: Collection[int]) -> Conflict | None:
    """That of an innermost loop that counts up by one and is never left; arrays that are `moving` have none."""
    options = loop.options
    if not options["counts"] or not _is_constant(loop.inputs[2], 1):
        return None
    body, (goes_on,) = options["body"], options["condition"].outputs
    nodes = [*body]
    if not _is_constant(goes_on, True) or body.checks or any(regions_of(node) for node in nodes):
        return None
    count, around = body.inputs[0], {id(one) for one in body.inputs[1 + options["carried"] :]}
    by_index: dict[int, list[Node]] = {}
    known: dict[int, Node] = {}
    for i, parameter in enumerate(body.inputs[1 : 1 + options["carried"]]):
        if not parameter.ndim or i in moving:
            continue
        versions, writes = _writes(parameter, body.outputs[i])
        along = [d for d in range(parameter.ndim) if all(write.inputs[2 + d] is count for write in writes)]
        for node in nodes if writes and along else ():
            if node.operation != "gather" or node.ndim or id(node.inputs[0]) not in versions:
                continue
            indices = node.inputs[1:]
            index = indices[along[0]]
            if id(index) in around and all(
                id(one) in around or one.operation == "constant" for one in indices
            ):
                known[id(index)] = index
                by_index.setdefault(id(index), []).append(node)
    if not by_index:
        return None
    first = next(iter(by_index))
    return Conflict(known[first], tuple(by_index[first]))


def _writes(parameter: Node, output: Node) -> tuple[set[int], list[Node]]:
    """The versions of an array in a round, and its writes, if nothing else is done to it; else none."""
    versions, writes = {id(parameter)}, []
    node = output
    while node is not parameter:
        if node.operation != "scatter" or not is_direct(node):
            return set(), []
        versions.add(id(node))
        writes.append(node)
        node = node.inputs[0]
    return versions, writes


def _is_constant(node: Node, value: object) -> bool:
    return node.operation == "constant" and bool(node.options["value"] == value)
