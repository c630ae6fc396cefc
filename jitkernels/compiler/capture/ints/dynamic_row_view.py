"""Rows of arrays at runtime indices in loops and branches, as views like NumPy's."""

from collections.abc import Sequence

from jitkernels.compiler.capture.functionalization import View
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number


class DynamicRow(View):
    """The slice of a view at in-bounds indices (`numbers`) along consecutive dimensions from `axis` on."""

    __slots__ = ("axis", "numbers")

    def __init__(self, of: View, axis: int, numbers: Sequence[Node]) -> None:
        shape = (*of.shape[:axis], *of.shape[axis + len(numbers) :])
        super().__init__(of.storage, shape, of, None, of.is_readonly)
        self.axis, self.numbers = axis, tuple(numbers)

    @property
    def node(self) -> Node:
        """The current value."""
        if self._made is None or self._of is not self.storage.node:
            base, options = self._base, {"axis": self.axis, "is_inside": True}
            self._made = Node("gather", (base.node, *self.numbers), base.node.dtype, self.shape, options)
            self._of = self.storage.node
        return self._made

    @property
    def _base(self) -> View:
        assert self.parent is not None, "of a view"
        return self.parent

    def write(self, value: Node) -> None:
        """Assign a node of the same dtype and shape."""
        if self.is_readonly:
            raise ValueError("assignment destination is read-only")
        base, options = self._base.node, {"axis": self.axis, "is_inside": True}
        self._base.write(Node("scatter", (base, value, *self.numbers), base.dtype, base.shape, options))

    def strides(self) -> tuple[Number, ...] | None:
        """Strides in elements; None where only NumPy knows them."""
        outer = self._base.strides()
        return None if outer is None else (*outer[: self.axis], *outer[self.axis + len(self.numbers) :])
