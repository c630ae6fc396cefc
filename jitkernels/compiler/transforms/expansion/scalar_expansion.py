"""Scalar expansion: what an inner loop computes again in each iteration of an outer one becomes an array.

``for i in range(m): for k in range(n): s[i] += x[i, k] * cos(w * k)`` calls `cos` for n values, m times each. LLVM
moves out of a loop what is the same in all its iterations, but not what changes with the inner loop alone.

1. A number of the inner loop's body that depends on its induction variable and on what the outer loop captures is
   computed once, into an array, by a loop in front of the outer one. Where the outer loop is in a third one which
   changes nothing of it either, that loop moves in front of the third.
2. It pays for functions such as `cos`. For loads it does if each is from a cache line of its own, no other load reads
   from these lines, and the inner loop contains no other: vectors of adjacent elements take their place.
3. Both loops count and run all iterations. The array is computed where the outer loop runs at all, so that no
   floating-point error is reported that the loops would not report.
4. The trip count of the inner loop has a bound that varies in no loop: so many elements the array has.

Padua and Wolfe, Advanced compiler optimizations for supercomputers, 1986.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import is_product_at_most_now, limit
from jitkernels.compiler.ir.dim_proofs import positive_part
from jitkernels.compiler.ir.graph import Graph, Node, has_value, transformed
from jitkernels.compiler.ir.regions import (
    REGIONS,
    TRUE,
    LoopParts,
    clone_region,
    is_tiled_loop,
    items,
    parameter,
    regions_of,
    symbols_in,
)
from jitkernels.compiler.ir.symbolic_dims import Number, Scope
from jitkernels.compiler.transforms.expansion.invariant_cone import MOVING, InvariantCone
from jitkernels.compiler.transforms.loop_ints import Ints, int_of, ints_inside, with_carried_ints
from jitkernels.compiler.transforms.loop_iterations import iterations_of

MIN_TRIPS, MIN_TRIPS_OF_COPIES = 2, 8
"""Least iterations of the outer loop for arrays of functions, and for copies of elements."""
MAX_ELEMENTS = 1 << 20
"""Most elements of an array: it should stay in a cache."""
EXPANDS = "expands"
"""The option of a loop that computes such arrays."""


def expand_scalars(graph: Graph, scope: Scope, ints: Ints = MappingProxyType({})) -> Graph:
    """Let inner loops load what they would compute again in each iteration of an outer one."""
    if not any(map(regions_of, graph)):
        return graph
    known = with_carried_ints(graph, ints, scope)

    def rule(node: Node) -> Node:
        regions = {name: node.options[name] for name in REGIONS if name in node.options}
        inner = {
            name: expand_scalars(region, scope, ints_inside(node, region, known, scope))
            for name, region in regions.items()
        }
        if any(inner[name] is not region for name, region in regions.items()):
            node = Node(node.operation, node.inputs, node.dtype, node.shape, {**node.options, **inner})
        return _OuterLoop(node, known).expanded() if node.operation == "loop" else node

    new = transformed(graph, rule)
    return graph if all(one is other for one, other in zip(new.roots, graph.roots, strict=True)) else new


class _OuterLoop:
    """A loop in whose inner loops numbers are expanded."""

    def __init__(self, loop: Node, ints: Ints) -> None:
        self.loop, self.ints, self.parts = loop, ints, LoopParts(loop)
        iterations = iterations_of(self.parts, ints)
        self.trip_count = None if iterations is None else iterations.trip_count

    def expanded(self) -> Node:
        """The loop, with arrays in place of what its inner loops compute again."""
        inner = [node for node in self.parts.body if node.operation == "loop"]
        if not inner or not _runs_all_iterations(self.loop) or not self._has_trips(MIN_TRIPS):
            return self.loop
        arrays: list[Node] = []
        parameters: list[Node] = []
        replaced: dict[Node, Node] = {}
        for node in inner:
            roots = [] if EXPANDS in node.options else self._roots_of(node)
            found = self._moved(node) if EXPANDS in node.options else self._arrays_of(node, roots)
            own = [parameter(array.dtype, array.shape, 0) for array in found]
            arrays += found
            parameters += own
            if roots and found:
                replaced[node] = _loading(node, roots, own)
            elif found:
                results = [item for item in self.parts.body if item.inputs[:1] == (node,)]
                replaced |= {item: own[item.options["index"]] for item in results}
        return _with_captured(self.loop, arrays, parameters, replaced) if arrays else self.loop

    def _has_trips(self, least: int) -> bool:
        """Whether it has so many iterations now, as far as that is known."""
        return self.trip_count is None or symbolic_dims.value_of(self.trip_count) >= least

    def _moved(self, expanding: Node) -> list[Node]:
        """The arrays that a loop in the body computes, computed in front of this one; none if they depend on it."""
        cone = InvariantCone(self.parts)
        operands = [found for operand in expanding.inputs if (found := cone.outside(operand)) is not None]
        if len(operands) < len(expanding.inputs) or symbols_in([expanding]) & cone.own_symbols:
            return []
        begin, end, *others = operands
        moved = Node("loop", [begin, self._end(begin, end), *others], "int64", (), expanding.options)
        return items(moved, LoopParts(moved).carried)

    def _arrays_of(self, loop: Node, roots: Sequence[Node]) -> list[Node]:
        """The arrays of roots of an inner loop; none where its bounds are not known in front of this one."""
        inner, cone = LoopParts(loop), InvariantCone(self.parts)
        begin, end = (cone.outside(bound) for bound in inner.bounds[:2]) if roots else (None, None)
        if begin is None or end is None:
            return []
        first, last = int_of(begin, self.ints), int_of(end, self.ints)
        most = None if first is None or last is None else limit(last - first, is_upper=True)
        if most is None or not is_product_at_most_now((most,), MAX_ELEMENTS):
            return []
        return self._computed(inner, roots, (begin, self._end(begin, end)), positive_part(most))

    def _end(self, begin: Node, end: Node) -> Node:
        """The end of a loop in front of this one that runs only if this one does."""
        if self.trip_count is not None and symbolic_dims.is_at_least(self.trip_count, 1):
            return end
        first, last, _ = self.parts.bounds
        runs = builder.elementwise("less" if self.parts.step > 0 else "greater", first, last)
        return Node("where", (runs, end, begin), "int64", ())

    def _computed(self, inner: LoopParts, roots: Sequence[Node], bounds: tuple[Node, Node], most: Number) -> list[Node]:
        """The arrays of `most` elements, computed by a loop in front of this one."""
        cone = InvariantCone(self.parts, inner)
        values = [cone.clone(root) for root in roots]
        empty = [builder.broadcast_to(builder.constant(0, root.dtype), (most,)) for root in roots]
        arrays = [parameter(one.dtype, one.shape, 0) for one in empty]
        index = _index_of(cone.induction, bounds[0], cone.leaf(bounds[0]))
        outputs = [
            Node("scatter", (array, value, index), array.dtype, array.shape, {"axis": 0, "is_inside": True})
            for array, value in zip(arrays, values, strict=True)
        ]
        parameters = [cone.induction, *arrays, *cone.leaves.values()]
        options = {
            "counts": True,
            "carried": len(arrays),
            "condition": clone_region(parameters, [TRUE]),
            "body": clone_region(parameters, outputs),
            EXPANDS: True,
        }
        operands = [*bounds, builder.constant(1, "int64"), *empty, *cone.leaves]
        return items(Node("loop", operands, "int64", (), options), empty)

    def _roots_of(self, loop: Node) -> list[Node]:
        """The numbers of an inner loop's body that are worth an array."""
        inner = LoopParts(loop)
        if not _runs_all_iterations(loop) or inner.step != 1:
            return []
        cone, body = InvariantCone(self.parts, inner), inner.body
        moving = [node for node in body if not node.ndim and cone.kind_of(node) == MOVING]
        users = {operand for node in body if cone.kind_of(node) != MOVING for operand in node.inputs}
        users |= {*body.outputs, *body.checks}
        functions = [node for node in moving if node in users and cone.has_function(node)]
        if any(node.operation == "loop" for node in body) or not self._has_trips(MIN_TRIPS_OF_COPIES):
            return functions
        loads = [node for node in body if node.operation == "gather" and cone.counter in node.inputs]
        alone = [node for node in loads if sum(other.inputs[0] is node.inputs[0] for other in loads) == 1]
        return functions or [node for node in alone if cone.is_strided(node)]


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
    begin, own = parts.bounds[0], [parameter(array.dtype, array.shape, 0) for array in arrays]
    first = parameter("int64", (), 0)
    index = _index_of(parts.induction[0], begin, first)
    replaced = {
        root: Node("gather", (one, index), one.dtype, (), {"axis": 0, "is_inside": True})
        for root, one in zip(roots, own, strict=True)
    }
    return _with_captured(loop, [*arrays, begin], [*own, first], replaced)


def _with_captured(
    loop: Node, operands: Sequence[Node], parameters: Sequence[Node], replaced: Mapping[Node, Node]
) -> Node:
    """A loop that captures further operands, with nodes of its body replaced by others of the new parameters."""
    body, condition = loop.options["body"], loop.options["condition"]
    options = {
        **loop.options,
        "condition": clone_region([*condition.inputs, *parameters], condition.outputs, condition.checks),
        "body": clone_region([*body.inputs, *parameters], body.outputs, body.checks, replaced),
    }
    return Node("loop", (*loop.inputs, *operands), loop.dtype, loop.shape, options)
