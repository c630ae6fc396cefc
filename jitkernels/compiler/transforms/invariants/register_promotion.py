"""Register promotion: an element of an array that all iterations of a loop read and write becomes a number.

``for k in range(m): y[i] += a[i, k] * x[columns[i, k]]`` loads and stores one element in each iteration. Each load has
to wait for the store before it, and LLVM moves neither out of a loop that may be left in the middle.

1. An iteration accesses nothing else of the array, and accesses it by indices that are the same in all iterations.
2. The loop carries the element in place of the array: it is loaded in front of the loop, and stored behind it. If the
   call bails out in between, it runs again in Python, on what the arrays contained before.
3. Sides of branches access it too, as in ``if x[k] > 0: y[i] += x[k]``. An access outside of branches shows that the
   element exists: loads are in bounds whatever the loop does.

Lu and Cooper, Register promotion in C programs, 1997.
"""

from collections.abc import Mapping
from typing import Any

from jitkernels.compiler.ir.graph import Graph, Node, key_of
from jitkernels.compiler.ir.region_memory import is_direct
from jitkernels.compiler.ir.regions import LoopParts, clone_region, items, parameter
from jitkernels.compiler.transforms.invariants.outer_loop import OuterLoop

ACCESSES = {"gather": 1, "scatter": 2}
"""Operations that access an element, and the number of operands before the indices."""

IN_BOUNDS = {"axis": 0, "is_inside": True}


class _StaysInMemoryError(Exception):
    """A loop accesses more of an array than one element."""


def promoted(outer: OuterLoop) -> tuple[Node, dict[int, Node]]:
    """The loop, carrying numbers in place of arrays of which it accesses one element; by position, what these become.

    The loop stays itself where there are no such arrays.
    """
    loop, stores = outer.loop, dict[int, tuple[Node, list[Node]]]()
    for position, carried in enumerate(outer.parts.carried):
        if not carried.ndim or not outer.parts.counts:
            continue
        try:
            loop, indices = _Promotion(OuterLoop(loop, outer.ints), position).result()
        except _StaysInMemoryError:
            continue
        stores[position] = carried, indices
    parts = LoopParts(loop)
    results = items(loop, parts.carried)
    return loop, {
        position: Node("scatter", (array, results[position], *indices), array.dtype, array.shape, IN_BOUNDS)
        for position, (array, indices) in stores.items()
    }


class _Promotion:
    """Replaces one array that a loop carries by its element. `place`: the indices of the element, when known."""

    def __init__(self, outer: OuterLoop, position: int) -> None:
        self.outer, self.parts, self.position = outer, outer.parts, position
        self.array = self.parts.carried_parameters[position]
        self.number = parameter(self.array.dtype, (), 0)
        self.place: tuple[Any, ...] | None = None
        self.indices: list[Node] = []

    def result(self) -> tuple[Node, list[Node]]:
        """The loop that carries the element, and the indices of the element in front of it."""
        parts, body = self.parts, self.parts.body
        if self.array in parts.condition.inputs and any(self._reads(node) for node in parts.condition):
            raise _StaysInMemoryError
        new, versions = self._region(body, self.array, self.number, {})
        if body.outputs[self.position] not in versions or body.outputs[self.position] is self.array:
            raise _StaysInMemoryError
        if not self.indices or any(one in versions for i, one in enumerate(body.outputs) if i != self.position):
            raise _StaysInMemoryError
        captured = [self.number if node is self.array else node for node in body.inputs]
        options = {
            **parts.node.options,
            "body": clone_region(captured, [new[one] for one in body.outputs], [new[one] for one in body.checks]),
            "condition": self._condition(),
        }
        carried = parts.carried[self.position]
        element = Node("gather", (carried, *self.indices), carried.dtype, (), IN_BOUNDS)
        inputs = [*parts.node.inputs]
        inputs[parts.first_operand + self.position] = element
        return Node("loop", inputs, parts.node.dtype, parts.node.shape, options), self.indices

    def _reads(self, node: Node) -> bool:
        return self.parts.condition.inputs[self.parts.first_parameter + self.position] in node.inputs

    def _condition(self) -> Graph:
        condition = self.parts.condition
        at = self.parts.first_parameter + self.position
        captured = [parameter(self.array.dtype, (), i) if i == at else one for i, one in enumerate(condition.inputs)]
        return clone_region(captured, condition.outputs, condition.checks)

    def _region(
        self, graph: Graph, array: Node, number: Node, around: Mapping[Node, Node]
    ) -> tuple[dict[Node, Node], set[Node]]:
        """The nodes of a region with a number in place of an array, and the versions of the array among them.

        `around`: by parameter of a branch's side, the node of the body that it is.
        """
        new, versions, changed = {array: number}, {array}, set[tuple[Node, int]]()
        for node in graph:
            if node in new:
                continue
            if node.operation == "item" and (node.inputs[0], node.options["index"]) in changed:
                versions.add(node)
                new[node] = Node("item", (new[node.inputs[0]],), array.dtype, (), node.options)
            elif not any(operand in versions for operand in node.inputs):
                new[node] = node.replace_inputs([new[operand] for operand in node.inputs]) if node.inputs else node
            elif node.operation == "branch":
                new[node], results = self._branch(node, versions, new, around)
                changed |= {(node, index) for index in results}
            else:
                new[node] = self._access(node, versions, new, around)
                if node.operation == "scatter":
                    versions.add(node)
        return new, versions

    def _access(self, node: Node, versions: set[Node], new: Mapping[Node, Node], around: Mapping[Node, Node]) -> Node:
        """What a load of the element yields, or a store to it leaves there."""
        array, *others = node.inputs
        if node.operation not in ACCESSES or not is_direct(node) or any(one in versions for one in others):
            raise _StaysInMemoryError
        indices = [around.get(index, index) for index in node.inputs[ACCESSES[node.operation] :]]
        outside = [self.outer.backward.outside(index) for index in indices]
        place = tuple(_key(index) for index in outside if index is not None)
        if len(place) < len(indices) or self.place not in (None, place):
            raise _StaysInMemoryError
        self.place = place
        if not around:
            self.indices = [index for index in outside if index is not None]
        if node.operation == "gather":
            return new[array]
        if others[0].dtype != node.dtype:
            raise _StaysInMemoryError
        return new[others[0]]

    def _branch(
        self, branch: Node, versions: set[Node], new: Mapping[Node, Node], around: Mapping[Node, Node]
    ) -> tuple[Node, list[int]]:
        """A branch that captures the number in place of the array, and which of its results are numbers now."""
        captured = branch.inputs[1:]
        positions = [i for i, operand in enumerate(captured) if operand in versions]
        if len(positions) != 1:
            raise _StaysInMemoryError
        (at,) = positions
        bases = [*branch.options["bases"]]
        results = [i for i, base in enumerate(bases) if base == at]
        options = {**branch.options, "bases": tuple(-1 if base == at else base for base in bases)}
        for name in ("yes", "no"):
            region: Graph = branch.options[name]
            scope = {inner: around.get(outer, outer) for inner, outer in zip(region.inputs, captured, strict=True)}
            number = parameter(self.array.dtype, (), at)
            inside, own = self._region(region, region.inputs[at], number, scope)
            if [i for i, one in enumerate(region.outputs) if one in own] != results:
                raise _StaysInMemoryError
            parameters = [number if one is region.inputs[at] else one for one in region.inputs]
            outputs, checks = ([inside[one] for one in nodes] for nodes in (region.outputs, region.checks))
            options[name] = clone_region(parameters, outputs, checks)
        operands = [new[operand] for operand in branch.inputs]
        return Node("branch", operands, branch.dtype, branch.shape, options), results


def _key(index: Node) -> Any:
    """Equal for indices that are the same number."""
    if index.operation in ("constant", "extent") or (index.inputs and index.operation not in ("gather", "item")):
        return key_of(index, tuple(_key(operand) for operand in index.inputs))
    return index
