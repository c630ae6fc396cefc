"""Index-set splitting of counted loops, at the iteration in which the induction variable equals an index.

``for j in range(n): d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` writes to ``d[i, k]`` only for j = k. Before and
behind that iteration the element is loop-invariant and its load is hoisted, so that LLVM vectorizes or unrolls.
"""

from collections.abc import Collection

from jitkernels.compiler.ir.graph import Node, has_value
from jitkernels.compiler.ir.region_memory import element_writes
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
    if not options["counts"] or not has_value(loop.inputs[2], 1):
        return None
    body, (continues,) = options["body"], options["condition"].outputs
    nodes = [*body]
    if not has_value(continues, True) or body.checks or any(regions_of(node) for node in nodes):
        return None
    count, captured = body.inputs[0], set(body.inputs[1 + options["carried"] :])
    by_index: dict[Node, list[Node]] = {}
    for i, parameter in enumerate(body.inputs[1 : 1 + options["carried"]]):
        if not parameter.ndim or i in moving:
            continue
        writes = element_writes(parameter, body.outputs[i])
        dims_along = [d for d in range(parameter.ndim) if all(write.inputs[2 + d] is count for write in writes)]
        for node in nodes if writes and dims_along else ():
            if node.operation != "gather" or node.ndim or node.inputs[0] not in (parameter, *writes):
                continue
            indices = node.inputs[1:]
            index = indices[dims_along[0]]
            if index in captured and all(one in captured or one.operation == "constant" for one in indices):
                by_index.setdefault(index, []).append(node)
    return next((Conflict(index, tuple(loads)) for index, loads in by_index.items()), None)
