"""If-conversion of conditional stores: ``if c: a[i, j] = v`` becomes ``a[i, j] = v if c else a[i, j]``.

A vector of lanes has no branch for each of them, and masked stores are slow on some processors. So an innermost loop
stores in each iteration to an element that it reads anyway, or that both sides of a branch store to: what it stores
there otherwise is what it read. This needs that the stored value is computed in any case, or sets no floating-point
flag and reads no memory.
"""

from collections.abc import Iterable
from typing import Any

from jitkernels.compiler.ir.graph import Graph, Node, key_of, rebuild_roots, transformed
from jitkernels.compiler.ir.region_memory import is_direct
from jitkernels.compiler.ir.regions import LoopParts, reachable, regions_of, with_regions
from jitkernels.compiler.transforms.index_set_splitting import conflict_of
from jitkernels.compiler.transforms.loop_parallelism import has_independent_accesses

SIDES = ("yes", "no")
MOVED = frozenset({"where", "negative", "absolute", "logical_and", "logical_or", "logical_not"})
"""Operations that set no floating-point flags."""
INTEGER = frozenset({
    "add", "subtract", "multiply", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal",
    "bitwise_and", "bitwise_or", "bitwise_xor", "minimum", "maximum", "cast",
})  # fmt: skip
"""Operations that set none on integers and bools."""


class _StaysBranchError(Exception):
    """A side of a branch computes what must not be computed in every iteration."""


def convert_conditional_stores(graph: Graph) -> Graph:
    """Convert the conditional stores of all innermost loops whose iterations are independent then."""
    if not any(map(regions_of, graph)):
        return graph

    def rule(node: Node) -> Node:
        node = with_regions(node, node.inputs, convert_conditional_stores)
        if node.operation != "loop":
            return node
        parts = LoopParts(node)
        if not parts.has_unit_step or parts.condition.checks or any(one.operation == "loop" for one in parts.body):
            return node
        body = _IterationStores(parts).converted()
        if body is parts.body:
            return node
        converted = Node("loop", node.inputs, node.dtype, node.shape, {**node.options, "body": body})
        conflict = conflict_of(converted, ())
        return converted if has_independent_accesses(converted, conflict.reads if conflict else ()) else node

    result = transformed(graph, rule)
    return graph if result.roots == graph.roots else result


class _IterationStores:
    """The body of an innermost loop. `numbers`: equal for nodes that compute the same in every iteration."""

    def __init__(self, parts: LoopParts) -> None:
        self.graph, self.induction = parts.body, parts.induction[0]
        self.numbers: dict[Node, int] = {}
        self.known: dict[Any, Node] = {}
        for node in self.graph:
            self._number(node)

    def converted(self) -> Graph:
        """The body with stores in place of branches."""
        results: dict[Node, list[Node]] = {}
        for node in self.graph:
            if node.operation == "item" and node.inputs[0].operation == "branch":
                results.setdefault(node.inputs[0], []).append(node)
        replaced: dict[Node, Node] = {}
        for branch, items in results.items():
            if len(items) == 1 and not any(region.checks for region in regions_of(branch)):
                try:
                    replaced[items[0]] = self._store(branch, items[0].options["index"])
                except _StaysBranchError:
                    continue
        if not replaced:
            return self.graph
        new: dict[Node, Node] = {}
        for node in reachable(self.graph.roots, replaced):
            here = node in replaced
            new[node] = new[replaced[node]] if here else node.replace_inputs([new[one] for one in node.inputs])
        return rebuild_roots(self.graph, new.__getitem__)

    def _number(self, node: Node) -> Node:
        """Number a node; return the first one that computes the same."""
        given = node.operation == "parameter" or regions_of(node)
        key = node if given else key_of(node, tuple(self.numbers[operand] for operand in node.inputs))
        first = self.known.setdefault(key, node)
        self.numbers[node] = self.numbers.get(first, len(self.numbers))
        return first

    def _store(self, branch: Node, index: int) -> Node:
        """The store of an element in place of a branch that stores to it in one side or in both."""
        sides = [self._side(branch, branch.options[name], index) for name in SIDES]
        stores = [side for side in sides if side.operation == "scatter"]
        arrays = {side.inputs[0] if side.operation == "scatter" else side for side in sides}
        places = {tuple(self.numbers[one] for one in store.inputs[2:]) for store in stores}
        if len(arrays) != 1 or len(places) != 1:
            raise _StaysBranchError
        store, (array,) = stores[0], arrays
        if not self._is_along(store.inputs[-1]):
            raise _StaysBranchError
        before = None if len(stores) == len(sides) else self._read(array, next(iter(places)))
        values = [side.inputs[1] if side.operation == "scatter" else before for side in sides]
        chosen = Node("where", [branch.inputs[0], *(one for one in values if one)], store.inputs[1].dtype, ())
        return store.with_inputs([array, chosen, *store.inputs[2:]])

    def _side(self, branch: Node, region: Graph, index: int) -> Node:
        """What a side makes of an array, in nodes of the body: the array itself, or a store to one element."""
        output = region.outputs[index]
        moved: dict[Node, Node] = dict(zip(region.inputs, branch.inputs[1:], strict=True))
        for node in region:
            if node not in moved and node is not output:
                moved[node] = self._moved(node, [moved[operand] for operand in node.inputs])
        if output in moved:
            return moved[output]
        if output.operation != "scatter" or not is_direct(output):
            raise _StaysBranchError
        return output.with_inputs([moved[operand] for operand in output.inputs])

    def _moved(self, node: Node, operands: Iterable[Node]) -> Node:
        """A node of a side among those of the body: one that is there, or one that is harmless."""
        if node.ndim or regions_of(node):
            raise _StaysBranchError
        there = node.with_inputs(operands) if node.inputs else node
        first = self._number(there)
        if first is not there or node.operation in ("constant", "extent"):
            return first
        floats = any(operand.dtype.startswith(("float", "complex", "bfloat")) for operand in there.inputs)
        if node.operation in MOVED or (node.operation in INTEGER and not floats):
            return there
        raise _StaysBranchError

    def _read(self, array: Node, place: tuple[int, ...]) -> Node:
        """The node that loads an element of an array in every iteration."""
        for node in self.graph:
            is_load = node.operation == "gather" and node.inputs[0] is array and not node.ndim
            if is_load and tuple(self.numbers[one] for one in node.inputs[1:]) == place:
                return node
        raise _StaysBranchError

    def _is_along(self, index: Node) -> bool:
        """Whether an index grows or falls by one with the induction variable."""
        if index is self.induction:
            return True
        if index.operation == "bounded":
            return self._is_along(index.inputs[0])
        if index.operation not in ("add", "subtract"):
            return False
        own = [operand for operand in index.inputs if self._depends(operand)]
        return len(own) == 1 and self._is_along(own[0])

    def _depends(self, node: Node) -> bool:
        return node is self.induction or any(map(self._depends, node.inputs))
