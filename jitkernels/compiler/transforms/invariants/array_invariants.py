"""Loop-invariant code motion of array expressions: loops load what they would compute again in each iteration.

1. An array, or a reduction of one, moves in front of a loop if it is computed from what the loop captures alone.
2. It pays for functions such as `exp`, reductions, scans and products; for sums and products of elements, loads of the
   result take as long. Views of a result stay in the loop.
3. It has so few elements that it stays in a cache. It is computed even if the loop does not run: array operations raise
   no exceptions, and the traced function decides which floating-point errors are reported.

Aho, Lam, Sethi and Ullman, Compilers: principles, techniques, and tools, 2006, section 9.5.
"""

from jitkernels.compiler.ir.dim_bounds import is_product_at_most_now
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import own_cost
from jitkernels.compiler.transforms.invariants.outer_loop import (
    MAX_INVARIANT_ELEMENTS,
    MIN_TRIPS,
    OuterLoop,
    parameters_like,
    with_captured,
)

MIN_COST = 8.0
"""In additions, of all that an element is computed from: the cost from which on a load is faster."""
HEAVY = frozenset({"reduce", "scan", "matmul"})
"""Operations that read many elements for each."""
SHOWN = frozenset({"view", "reshape", "constant", "extent", "iota"})
"""Operations that take no time, or less than a load."""


def without_invariants(outer: OuterLoop) -> Node:
    """The loop, capturing the arrays of its body that do not change in it."""
    if not outer.has_trips(MIN_TRIPS):
        return outer.loop
    roots = [root for root in _roots_of(outer) if is_product_at_most_now(root.shape, MAX_INVARIANT_ELEMENTS)]
    if not roots:
        return outer.loop
    arrays = [moved for root in roots if (moved := outer.backward.outside(root)) is not None]
    parameters = parameters_like(arrays)
    return with_captured(outer.loop, arrays, parameters, dict(zip(roots, parameters, strict=True)))


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
