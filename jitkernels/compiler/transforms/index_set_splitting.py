"""Index-set splitting of counted loops, at the iteration in which the induction variable equals an index.

``for j in range(n): d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` writes to ``d[i, k]`` only for j = k. Before and
behind that iteration the element is loop-invariant and its load is hoisted, so that LLVM vectorizes or unrolls.
"""

from collections.abc import Collection

from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.region_memory import is_direct
from jitkernels.compiler.ir.regions import regions_of
from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class Conflict:
    """A loop-invariant index that the induction variable meets, and the loads that are invariant otherwise."""

    index: Node
    reads: tuple[Node, ...]


def conflict_of(loop: Node, moving: Collection[int]) -> Conflict | None:
    """The conflict of an innermost loop with step 1 and no exit; arrays in `moving` change buffers and have none."""
    options = loop.options
    if not options["counts"] or not _is_constant(loop.inputs[2], 1):
        return None
    body, (continues,) = options["body"], options["condition"].outputs
    nodes = [*body]
    if not _is_constant(continues, True) or body.checks or any(regions_of(node) for node in nodes):
        return None
    count, captured = body.inputs[0], set(body.inputs[1 + options["carried"] :])
    by_index: dict[Node, list[Node]] = {}
    for i, parameter in enumerate(body.inputs[1 : 1 + options["carried"]]):
        if not parameter.ndim or i in moving:
            continue
        versions, writes = _writes(parameter, body.outputs[i])
        dims_along = [d for d in range(parameter.ndim) if all(write.inputs[2 + d] is count for write in writes)]
        for node in nodes if writes and dims_along else ():
            if node.operation != "gather" or node.ndim or node.inputs[0] not in versions:
                continue
            indices = node.inputs[1:]
            index = indices[dims_along[0]]
            if index in captured and all(one in captured or one.operation == "constant" for one in indices):
                by_index.setdefault(index, []).append(node)
    return next((Conflict(index, tuple(loads)) for index, loads in by_index.items()), None)


def _writes(parameter: Node, output: Node) -> tuple[set[Node], list[Node]]:
    """The versions of an array in an iteration, and the scatters that make them; none if anything else changes it."""
    versions, writes = {parameter}, []
    node = output
    while node is not parameter:
        if node.operation != "scatter" or not is_direct(node):
            return set(), []
        versions.add(node)
        writes.append(node)
        node = node.inputs[0]
    return versions, writes


def _is_constant(node: Node, value: object) -> bool:
    return node.operation == "constant" and bool(node.options["value"] == value)
