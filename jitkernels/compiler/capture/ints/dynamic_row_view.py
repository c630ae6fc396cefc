"""Rows of arrays at runtime indices, as views like NumPy's."""

from collections.abc import Sequence

from jitkernels.compiler.capture.functionalization import View
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number


def bounded(tracer: Tracer, node: Node, extent: Number, *, counts_back: bool = True) -> Node:
    """A nonnegative index behind a bounds check of the loop or branch."""
    checked = Node("bounded", (node,), "int64", (), {"extent": extent, "counts_back": counts_back})
    tracer.checks.append(elementwise("less", checked, 0))  # never true: keeps the bounds check alive
    return checked


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
            self._made, self._of = self._gather(), self.storage.node
        return self._made

    def _gather(self) -> Node:
        base, options = self._base, {"axis": self.axis, "is_inside": True}
        return Node("gather", (base.node, *self.inside()), base.node.dtype, self.shape, options)

    @property
    def _base(self) -> View:
        assert self.parent is not None, "of a view"
        return self.parent

    def inside(self) -> tuple[Node, ...]:
        """The indices, nonnegative and in bounds, for code of a loop or branch."""
        return self.numbers

    def write(self, value: Node) -> None:
        """Assign a node of the same dtype and shape."""
        if self.is_readonly:
            raise ValueError("assignment destination is read-only")
        self._base.write(self._scatter(value))

    def _scatter(self, value: Node) -> Node:
        base, options = self._base.node, {"axis": self.axis, "is_inside": True}
        return Node("scatter", (base, value, *self.inside()), base.dtype, base.shape, options)

    def strides(self) -> tuple[Number, ...] | None:
        """Strides in elements; None where only NumPy knows them."""
        outer = self._base.strides()
        return None if outer is None else (*outer[: self.axis], *outer[self.axis + len(self.numbers) :])


class UncheckedRow(DynamicRow):
    """One made outside of loops and branches: gathers and scatters there check the indices, which may count back."""

    __slots__ = ("tracer",)

    def __init__(self, tracer: Tracer, of: View, axis: int, numbers: Sequence[Node]) -> None:
        super().__init__(of, axis, numbers)
        self.tracer = tracer

    @property
    def node(self) -> Node:
        """The current value: in a loop or branch made again, since the bounds checks belong to it."""
        return self._gather() if self.tracer.depth else super().node

    def _gather(self) -> Node:
        if self.tracer.depth:
            return super()._gather()
        base = self._base.node
        return Node("gather", (base, *self.numbers), base.dtype, self.shape, {"axis": self.axis})

    def inside(self) -> tuple[Node, ...]:
        extents = self._base.shape[self.axis :]
        return tuple(bounded(self.tracer, one, extent) for one, extent in zip(self.numbers, extents, strict=False))

    def _scatter(self, value: Node) -> Node:
        if self.tracer.depth:
            return super()._scatter(value)
        base = self._base.node
        return Node("scatter", (base, value, *self.numbers), base.dtype, base.shape, {"axis": self.axis})
