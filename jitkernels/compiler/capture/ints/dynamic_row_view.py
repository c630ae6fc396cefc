"""Rows of arrays in loops and branches, at places that the running code computes: views, as NumPy has them."""

from collections.abc import Sequence

from jitkernels.frontends.storage import View
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node


class Row(View):
    """What a view shows at some numbers along dimensions from an axis on, which are known to be in bounds."""

    __slots__ = ("axis", "numbers")

    def __init__(self, of: View, axis: int, numbers: Sequence[Node]) -> None:
        shape = (*of.shape[:axis], *of.shape[axis + len(numbers) :])
        super().__init__(of.storage, shape, of, None, of.is_readonly)
        self.axis, self.numbers = axis, tuple(numbers)

    @property
    def node(self) -> Node:
        """What is seen now."""
        assert self.parent is not None, "of a view"
        if self._made is None or self._of is not self.storage.node:
            base, options = self.parent.node, {"axis": self.axis, "is_inside": True}
            self._made = Node("gather", (base, *self.numbers), base.dtype, self.shape, options)
            self._of = self.storage.node
        return self._made

    def write(self, value: Node) -> None:
        """Change what is seen to a node of the same dtype and shape."""
        if self.is_readonly:
            raise ValueError("assignment destination is read-only")
        assert self.parent is not None, "of a view"
        base, options = self.parent.node, {"axis": self.axis, "is_inside": True}
        self.parent.write(Node("scatter", (base, value, *self.numbers), base.dtype, base.shape, options))

    def strides(self) -> tuple[Number, ...] | None:
        """Distances in elements, None where only NumPy knows them."""
        assert self.parent is not None, "of a view"
        outer = self.parent.strides()
        return None if outer is None else (*outer[: self.axis], *outer[self.axis + len(self.numbers) :])
