"""Loop-invariant code motion of array expressions: loops load what they would compute again in each iteration.

1. An array, or a reduction of one, moves in front of a loop if it is computed from what the loop captures alone.
2. It pays for functions such as `exp`, reductions, scans and products; for sums and products of elements, loads of the
   result take as long. A view of a result is none: the loop shows it.
3. It is computed where the loop runs at all, and has so few elements that it stays in a cache.

Aho, Lam, Sethi and Ullman, Compilers: principles, techniques, and tools, 2006, section 9.5.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.dim_bounds import is_product_at_most_now
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import own_cost
from jitkernels.compiler.transforms.invariants.outer_loop import (
    MAX_INVARIANT_ELEMENTS,
    MIN_TRIPS,
    OuterLoop,
    parameters_like,
    where_it_runs,
)

MIN_COST = 8.0
"""In additions, of all that an element is computed from: the cost from which on a load is faster."""
HEAVY = frozenset({"reduce", "scan", "matmul"})
"""Operations that read many elements for each."""
SHOWN = frozenset({"view", "reshape", "constant", "extent", "iota"})
"""Operations that take no time, or less than a load."""


def without_invariants(outer: OuterLoop) -> Node:
    """The loop, capturing the arrays of its body that do not change in it."""
    if not outer.has_trips(MIN_TRIPS) or not outer.is_known:
        return outer.loop
    roots = [root for root in _roots_of(outer) if is_product_at_most_now(root.shape, MAX_INVARIANT_ELEMENTS)]
    if not roots:
        return outer.loop
    moved = [moved for root in roots if (moved := outer.backward.outside(root)) is not None]
    arrays = moved if outer.runs is None else _in_branch(outer, moved)
    parameters = parameters_like(arrays)
    return outer.capturing(arrays, parameters, dict(zip(roots, parameters, strict=True)))


def _roots_of(outer: OuterLoop) -> list[Node]:
    """The invariant nodes of the body that are worth it, and that something reads which stays in the loop.

    What an iteration leaves in an array that the loop carries has to be written there.
    """
    body, backward, left = outer.parts.body, outer.backward, set(outer.parts.body.outputs)
    stays, roots = {*body.outputs, *body.checks}, []
    for node in reversed([*body]):
        is_fixed = node not in body.inputs and backward.outside(node) is not None
        if is_fixed and node.operation not in SHOWN:
            if node in stays and node not in left and _is_worth(outer, node):
                roots.append(node)
        elif not is_fixed or node in stays:
            stays.update(node.inputs)
            left.update(node.inputs if node in left and is_fixed else ())
    return roots[::-1]


def _is_worth(outer: OuterLoop, root: Node) -> bool:
    """Whether loading a node is faster than computing it."""
    inputs, seen, cost, is_of_arrays = set(outer.parts.body.inputs), {root}, 0.0, bool(root.ndim)
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in inputs:
            continue
        if node.operation in HEAVY:
            return True
        is_of_arrays |= bool(node.ndim)
        cost += 0.0 if node.operation in SHOWN else own_cost(node)
        new = [operand for operand in node.inputs if operand not in seen]
        seen.update(new)
        waiting += new
    return is_of_arrays and cost >= MIN_COST


def _in_branch(outer: OuterLoop, nodes: Sequence[Node]) -> list[Node]:
    """The nodes where the loop runs, and zeros where it does not."""
    initial = [builder.broadcast_to(builder.constant(0, node.dtype), node.shape) for node in nodes]
    updated = [
        Node(
            "update",
            (zeros, node),
            node.dtype,
            node.shape,
            {"map": builder.identity_map(node.ndim), "extents": node.shape},
        )
        for zeros, node in zip(initial, nodes, strict=True)
    ]
    return where_it_runs(outer.runs, updated, initial, outer.parts.captured)
