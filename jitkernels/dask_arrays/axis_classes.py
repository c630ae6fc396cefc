"""Which axes of arguments and results belong together, and which a function needs whole, from its graph.

Axes of one class are split into blocks alike: elements of the result at some place depend on elements of the arguments
at that place only. Where an operation combines elements along an axis, as a sum does, its class must not be split.
"""

from collections.abc import Sequence

from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.symbolic_dims import Number, same

Axis = int | None
"""The class of an axis; None for one along which all elements are equal, which goes with any class."""
PLACED_ALIKE = frozenset({"cast", "placed"})


class AxisClasses:
    """Disjoint sets of axes, each with the reason why it must be whole, or an empty text."""

    def __init__(self) -> None:
        self._parents: list[int] = []
        self._reasons: list[str] = []
        self.of: dict[Node, tuple[Axis, ...]] = {}

    def new(self, reason: str = "") -> int:
        """A new class; `reason`: why it must be whole."""
        self._parents.append(len(self._parents))
        self._reasons.append(reason)
        return self._parents[-1]

    def find(self, axis: int) -> int:
        """The number of an axis's class."""
        while self._parents[axis] != axis:
            axis = self._parents[axis]
        return axis

    def reason(self, axis: int) -> str:
        """Why the class of an axis must be whole; "" if it need not be."""
        return self._reasons[self.find(axis)]

    def join(self, left: Axis, right: Axis) -> Axis:
        """Let two axes be of one class."""
        if left is None or right is None:
            return right if left is None else left
        first, second = self.find(left), self.find(right)
        self._parents[second] = first
        self._reasons[first] = self._reasons[first] or self._reasons[second]
        return first

    def require_whole(self, axis: Axis, reason: str) -> None:
        """The class of an axis must be whole."""
        if axis is not None:
            self._reasons[self.find(axis)] = self.reason(axis) or reason

    def add(self, outputs: Sequence[Node]) -> None:
        """Find the classes of all nodes that the outputs are computed from. Expects those of inputs in `of`."""
        for node in sorted_nodes(outputs):
            if node not in self.of:
                self.of[node] = self._axes_of(node)

    def _axes_of(self, node: Node) -> tuple[Axis, ...]:
        if OPERATIONS[node.operation].is_elementwise or node.operation in PLACED_ALIKE:
            return self._broadcast(node.inputs, node)
        if not node.ndim and not node.inputs:
            return ()
        rule = getattr(self, f"_{node.operation}", None)
        return self._mixed(node) if rule is None else rule(node)

    def _broadcast(self, operands: Sequence[Node], node: Node) -> tuple[Axis, ...]:
        """The axes of an elementwise operation: those of its operands, aligned at the end."""
        axes: list[Axis] = [None] * node.ndim
        for operand in operands:
            for i, axis in enumerate(reversed(self.of[operand])):
                if not _is_one(operand.shape[-1 - i]) or _is_one(node.shape[-1 - i]):
                    axes[-1 - i] = self.join(axes[-1 - i], axis)
        return tuple(axes)

    def _mixed(self, node: Node) -> tuple[Axis, ...]:
        """The axes of an operation that may combine any elements."""
        reason = f"combines elements along it ({node.operation})"
        for operand in node.inputs:
            for axis in self.of[operand]:
                self.require_whole(axis, reason)
        return tuple(None if _is_one(extent) else self.new(reason) for extent in node.shape)

    def _constant(self, node: Node) -> tuple[Axis, ...]:
        return tuple(self.new("meets a constant array along it") for _ in node.shape)

    def _kernel(self, node: Node) -> tuple[Axis, ...]:
        """A kernel of the registry: its results have the axes of the nodes of its reference, where it has some."""
        return () if node.options.get("instead") else self._mixed(node)

    def _item(self, node: Node) -> tuple[Axis, ...]:
        instead = node.inputs[0].options.get("instead")
        if not instead:
            return self._mixed(node)
        result = instead[node.options["index"]]
        self.add([result])
        return self.of[result]

    def _view(self, node: Node) -> tuple[Axis, ...]:
        """Whole axes keep their classes; axes of which a part is taken have new ones."""
        (operand,) = node.inputs
        axes: list[Axis] = [None] * node.ndim
        for extent, axis, (start, steps) in zip(operand.shape, self.of[operand], node.options["map"], strict=True):
            is_same = len(steps) == 1 and _is(steps[0][1], 1) and _is(start, 0)
            if is_same and same(node.shape[steps[0][0]], extent):
                axes[steps[0][0]] = self.join(axes[steps[0][0]], axis)
                continue
            reason = "takes a part of it"
            if not _is_one(extent):
                self.require_whole(axis, reason)
            for dimension, step in steps:
                if not _is(step, 0):
                    axes[dimension] = self.join(axes[dimension], self.new(reason))
        return tuple(axes)

    def _reshape(self, node: Node) -> tuple[Axis, ...]:
        """Leading and trailing extents that stay keep their classes; those between are combined."""
        (operand,) = node.inputs
        before = [i for i, extent in enumerate(operand.shape) if not _is_one(extent)]
        after = [i for i, extent in enumerate(node.shape) if not _is_one(extent)]
        axes: list[Axis] = [None] * node.ndim
        for place in (0, -1):
            while before and after and same(operand.shape[before[place]], node.shape[after[place]]):
                axes[after.pop(place)] = self.of[operand][before.pop(place)]
        for i in before:
            self.require_whole(self.of[operand][i], "reshapes it")
        for i in after:
            axes[i] = self.new("reshapes it")
        return tuple(axes)

    def _reduce(self, node: Node) -> tuple[Axis, ...]:
        (operand,), reduced = node.inputs, node.options["axes"]
        for i in reduced:
            self.require_whole(self.of[operand][i], f"reduces along it ({node.options['kind']})")
        return tuple(axis for i, axis in enumerate(self.of[operand]) if i not in reduced)

    def _scan(self, node: Node) -> tuple[Axis, ...]:
        axes = self.of[node.inputs[0]]
        self.require_whole(axes[node.options["axis"]], "accumulates along it")
        return axes

    def _iota(self, node: Node) -> tuple[Axis, ...]:
        return tuple(self.new("counts along it") if i == node.options["axis"] else None for i in range(node.ndim))

    def _matmul(self, node: Node) -> tuple[Axis, ...]:
        left, right = node.inputs
        if left.ndim < 2 or right.ndim < 2 or node.options.get("is_packed"):
            return self._mixed(node)
        for axis in (self.of[left][-1], self.of[right][-2]):
            self.require_whole(axis, "sums products along it (matmul)")
        axes: list[Axis] = [None] * (node.ndim - 2)
        for operand in (left, right):
            for i, axis in enumerate(reversed(self.of[operand][:-2])):
                if not _is_one(operand.shape[-3 - i]) or _is_one(node.shape[-3 - i]):
                    axes[-1 - i] = self.join(axes[-1 - i], axis)
        return (*axes, self.of[left][-2], self.of[right][-1])

    def _concatenate(self, node: Node) -> tuple[Axis, ...]:
        place, reason = node.options["axis"], "concatenates along it"
        axes: list[Axis] = [None] * node.ndim
        for operand in node.inputs:
            for i, axis in enumerate(self.of[operand]):
                if i == place:
                    self.require_whole(axis, reason)
                else:
                    axes[i] = self.join(axes[i], axis)
        axes[place] = self.new(reason)
        return tuple(axes)

    def _gather(self, node: Node) -> tuple[Axis, ...]:
        """The array is whole along the axes that are indexed; indices keep their axes."""
        array, *indices = node.inputs
        place = node.options["axis"]
        before, indexed = self.of[array][:place], self.of[array][place : place + len(indices)]
        for axis in indexed:
            self.require_whole(axis, "takes elements of it by index")
        count = node.ndim - (array.ndim - len(indices))
        axes: list[Axis] = [None] * count
        for index in indices:
            for i, axis in enumerate(reversed(self.of[index])):
                if not _is_one(index.shape[-1 - i]):
                    axes[-1 - i] = self.join(axes[-1 - i], axis)
        return (*before, *axes, *self.of[array][place + len(indices) :])


def _is(value: Number, number: int) -> bool:
    return type(value) is int and value == number


def _is_one(extent: Number) -> bool:
    return _is(extent, 1)
