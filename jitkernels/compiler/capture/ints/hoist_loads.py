"""Elements that a loop reads in each round and never writes: they are read once, before it.

``for j in range(k + 1, n): a[i, j] -= a[i, k] * a[k, j]`` writes to no ``a[i, k]``, as no j is k. LLVM does not see
this, and would neither keep the element in a register nor take several rounds at once.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.flows import is_direct
from jitkernels.graph.ir import Node, sorted_nodes


class Carried(NamedTuple):
    """An array that a loop carries: the parameter of a round, what the round makes of it, what it was before."""

    parameter: Node
    output: Node
    before: Node


class Counting(NamedTuple):
    """How a loop counts: the parameter, where it begins, and in which direction."""

    number: Node
    begin: Node
    is_up: bool


def hoisted(
    tracer: Tracer, roots: Sequence[Node], arrays: Sequence[Carried], counting: Counting, start: int
) -> dict[int, Node]:
    """By the ids of reads in a round, what reads the same before the loop. What is older than `start` is no round's."""
    found: dict[int, Node] = {}
    nodes = sorted_nodes(roots)
    for array in arrays:
        writes = _writes(array)
        if not writes:
            continue
        versions = {id(array.parameter), *map(id, writes)}
        for node in nodes:
            if node.operation != "gather" or node.ndim or id(node.inputs[0]) not in versions:
                continue
            indices = node.inputs[1:]
            if all(one.serial < start or one.operation == "constant" for one in indices) and all(
                _is_apart(tracer, indices, write.inputs[2:], counting) for write in writes
            ):
                found[id(node)] = Node("gather", (array.before, *indices), node.dtype, (), node.options)
    return found


def _writes(array: Carried) -> list[Node]:
    """The writes of a round, if it does nothing to the array but write elements; else none."""
    found = []
    node = array.output
    while node is not array.parameter:
        if node.operation != "scatter" or not is_direct(node):
            return []
        found.append(node)
        node = node.inputs[0]
    return found


def _is_apart(tracer: Tracer, read: Sequence[Node], written: Sequence[Node], counting: Counting) -> bool:
    """Whether no round writes what is read: the count goes along some dimension, from behind the index on."""
    return any(
        other is counting.number and _is_before(tracer, one, counting)
        for one, other in zip(read, written, strict=True)
    )


def _is_before(tracer: Tracer, index: Node, counting: Counting) -> bool:
    begin = counting.begin
    if begin.operation in ("add", "subtract") and index in begin.inputs:
        other = begin.inputs[1] if begin.inputs[0] is index else begin.inputs[0]
        step = other.options["value"] if other.operation == "constant" else 0
        if begin.operation == "subtract":
            step = -step if begin.inputs[0] is index else 0
        return bool(step > 0 if counting.is_up else step < 0)
    one, other_bounds = ranges.interval(tracer, index), ranges.interval(tracer, begin)
    if one is None or other_bounds is None:
        return False
    if counting.is_up:
        return ranges.is_at_least(other_bounds[0] - one[1], 1)
    return ranges.is_at_least(one[0] - other_bounds[1], 1)
