"""Scalar expansion: what an inner loop computes again in each iteration of an outer one becomes an array.

``for i in range(m): for k in range(n): s[i] += x[i, k] * cos(w * k)`` calls `cos` for n values, m times each. LLVM
moves out of a loop what is the same in all its iterations, but not what changes with the inner loop alone.

1. A number of the inner loop's body that depends on its induction variable and on what the outer loop captures is
   computed once, into an array, by a loop in front of the outer one. Where the outer loop is in a third one which
   changes nothing of it either, that loop moves in front of the third.
2. It pays for functions such as `cos`. For loads it does if each is from a cache line of its own, no other load reads
   from these lines, and the inner loop contains no other: vectors of adjacent elements take their place.
3. The inner loop counts and runs all iterations. The array is computed even if the outer loop does not run: loads are
   in bounds whatever that does, and the traced function decides which floating-point errors are reported.
4. The trip count of the inner loop has a bound that varies in no loop: so many elements the array has.

Padua and Wolfe, Advanced compiler optimizations for supercomputers, 1986.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.dim_bounds import is_product_at_most_now, limit
from jitkernels.compiler.ir.dim_proofs import positive_part
from jitkernels.compiler.ir.graph import Node, has_value
from jitkernels.compiler.ir.regions import TRUE, LoopParts, clone_region, is_tiled_loop, items, parameter, symbols_in
from jitkernels.compiler.ir.symbolic_dims import Number
from jitkernels.compiler.transforms.invariants.backward_slice import MOVING, BackwardSlice
from jitkernels.compiler.transforms.invariants.outer_loop import (
    MAX_INVARIANT_ELEMENTS,
    MIN_TRIPS,
    OuterLoop,
    parameters_like,
    with_captured,
)
from jitkernels.compiler.transforms.loop_ints import int_of

MIN_TRIPS_OF_COPIES = 8
"""Least iterations of the outer loop for copies of elements."""
EXPANDS = "expands"
"""The option of a loop that computes such arrays."""


def expanded(outer: OuterLoop) -> Node:
    """The loop, with arrays in place of what its inner loops compute again."""
    inner = [node for node in outer.parts.body if node.operation == "loop"]
    if not inner or not outer.has_trips(MIN_TRIPS):
        return outer.loop
    arrays: list[Node] = []
    parameters: list[Node] = []
    replaced: dict[Node, Node] = {}
    for node in inner:
        roots = [] if EXPANDS in node.options else _roots_of(outer, node)
        found = _moved(outer, node) if EXPANDS in node.options else _arrays_of(outer, node, roots)
        own = parameters_like(found)
        arrays += found
        parameters += own
        if roots and found:
            replaced[node] = _loading(node, roots, own)
        elif found:
            results = [item for item in outer.parts.body if item.inputs[:1] == (node,)]
            replaced |= {item: own[item.options["index"]] for item in results}
    return with_captured(outer.loop, arrays, parameters, replaced) if arrays else outer.loop


def _moved(outer: OuterLoop, expanding: Node) -> list[Node]:
    """The arrays that a loop in the body computes, computed in front of the outer one; none if they depend on it."""
    operands = [found for operand in expanding.inputs if (found := outer.backward.outside(operand)) is not None]
    if len(operands) < len(expanding.inputs) or symbols_in([expanding]) & outer.backward.own_symbols:
        return []
    moved = Node("loop", operands, "int64", (), expanding.options)
    return items(moved, LoopParts(moved).carried)


def _arrays_of(outer: OuterLoop, loop: Node, roots: Sequence[Node]) -> list[Node]:
    """The arrays of roots of an inner loop; none where its bounds are not known in front of the outer one."""
    inner = LoopParts(loop)
    begin, end = (outer.backward.outside(bound) for bound in inner.bounds[:2]) if roots else (None, None)
    if begin is None or end is None:
        return []
    first, last = int_of(begin, outer.ints), int_of(end, outer.ints)
    most = None if first is None or last is None else limit(last - first, is_upper=True)
    if most is None or not is_product_at_most_now((most,), MAX_INVARIANT_ELEMENTS):
        return []
    return _computed(BackwardSlice(outer.parts, inner), roots, (begin, end), positive_part(most))


def _computed(backward: BackwardSlice, roots: Sequence[Node], bounds: tuple[Node, Node], most: Number) -> list[Node]:
    """The arrays of `most` elements, computed by a loop in front of the outer one."""
    values = [backward.clone(root) for root in roots]
    empty = [builder.broadcast_to(builder.constant(0, root.dtype), (most,)) for root in roots]
    arrays = parameters_like(empty)
    index = _index_of(backward.induction, bounds[0], backward.leaf(bounds[0]))
    outputs = [
        Node("scatter", (array, value, index), array.dtype, array.shape, {"axis": 0, "is_inside": True})
        for array, value in zip(arrays, values, strict=True)
    ]
    parameters = [backward.induction, *arrays, *backward.leaves.values()]
    options = {
        "counts": True,
        "carried": len(arrays),
        "condition": clone_region(parameters, [TRUE]),
        "body": clone_region(parameters, outputs),
        EXPANDS: True,
    }
    operands = [*bounds, builder.constant(1, "int64"), *empty, *backward.leaves]
    return items(Node("loop", operands, "int64", (), options), empty)


def _roots_of(outer: OuterLoop, loop: Node) -> list[Node]:
    """The numbers of an inner loop's body that are worth an array."""
    inner = LoopParts(loop)
    if not _runs_all_iterations(loop) or inner.step != 1:
        return []
    backward, body = BackwardSlice(outer.parts, inner), inner.body
    moving = [node for node in body if not node.ndim and backward.kind_of(node) == MOVING]
    users = {operand for node in body if backward.kind_of(node) != MOVING for operand in node.inputs}
    users |= {*body.outputs, *body.checks}
    functions = [node for node in moving if node in users and backward.has_function(node)]
    if any(node.operation == "loop" for node in body) or not outer.has_trips(MIN_TRIPS_OF_COPIES):
        return functions
    loads = [node for node in body if node.operation == "gather" and backward.counter in node.inputs]
    alone = [node for node in loads if sum(other.inputs[0] is node.inputs[0] for other in loads) == 1]
    return functions or [node for node in alone if backward.is_strided(node)]


def _runs_all_iterations(loop: Node) -> bool:
    """Whether a loop counts by a constant step, and does not end early."""
    parts = LoopParts(loop)
    if not parts.counts or is_tiled_loop(loop) or parts.bounds[2].operation != "constant":
        return False
    return has_value(parts.condition.outputs[0], 1)


def _index_of(induction: Node, begin: Node, inside: Node) -> Node:
    """The index of an iteration's element, in a region where `inside` is what `begin` is in front of it."""
    return induction if has_value(begin, 0) else builder.elementwise("subtract", induction, inside)


def _loading(loop: Node, roots: Sequence[Node], arrays: Sequence[Node]) -> Node:
    """An inner loop that loads the elements of arrays in place of computing its roots."""
    parts = LoopParts(loop)
    begin, own = parts.bounds[0], parameters_like(arrays)
    first = parameter("int64", (), 0)
    index = _index_of(parts.induction[0], begin, first)
    replaced = {
        root: Node("gather", (one, index), one.dtype, (), {"axis": 0, "is_inside": True})
        for root, one in zip(roots, own, strict=True)
    }
    return with_captured(loop, [*arrays, begin], [*own, first], replaced)
