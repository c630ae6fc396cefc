"""Functionalization: arrays of a trace are views of storages, whose values change when a view is written to.

A view knows how to read its elements from its base, and how a write to it changes the base. So in-place NumPy code
becomes a graph of immutable nodes: each write gives the storage another node.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from jitkernels.compiler.ir import builder, dim_bounds
from jitkernels.compiler.ir.builder import IndexMap, UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.graph import Node, serial
from jitkernels.compiler.ir.memory_order import order_like
from jitkernels.compiler.ir.symbolic_dims import Number, same, value_of


class Watched(threading.local):
    """Write logs of this thread: the written storages, with their values before the first write."""

    logs: tuple[dict["Storage", Node], ...] = ()


watched = Watched()


class Storage:
    """Memory of one array. `leaf` is the index of the argument that owns it.

    `is_c`: whether elements are C-contiguous, None where only NumPy knows. `may_aliases` are storages that in NumPy may
    be the same memory, so that neither may be written to. `born`: its serial number among nodes. `is_read`: whether its
    value was read since the flag was last reset.
    """

    __slots__ = (
        "born", "choices", "is_c", "is_frozen", "is_read", "leaf", "may_aliases", "node", "order", "strides", "views",
        "whole_aliases", "written",
    )  # fmt: skip

    def __init__(self, node: Node, leaf: int | None = None, is_c: bool | None = True) -> None:
        self.node, self.leaf = node, leaf
        self.is_c = True if node.ndim < 2 and leaf is None else is_c
        self.strides: tuple[Number, ...] | None = None
        self.order: tuple[int, ...] | None = None
        self.written = self.is_frozen = self.is_read = False
        self.may_aliases: list[Storage] = []
        self.choices: list[Storage] = []
        self.views = False
        self.whole_aliases: list[Storage] = []
        self.born = serial()

    def change(self, node: Node) -> None:
        """Bind another value. Raises UnsupportedError where NumPy might, or might not, change other arrays too."""
        if self.is_frozen:
            raise ValueError("assignment destination is read-only")
        if self.may_aliases:
            raise UnsupportedError("a write to an array that another array may alias")
        if self.strides is not None and any(
            same(step, 0) and not same(extent, 1) for step, extent in zip(self.strides, node.shape, strict=True)
        ):
            raise UnsupportedError("a write to an argument whose elements overlap in memory")
        self.log()
        self.node, self.written = node, True

    def log(self) -> None:
        """Log the value before a write."""
        for log in watched.logs:
            log.setdefault(self, self.node)

    def set_layout_like(self, strides: Sequence[Number] | None) -> None:
        """Give a new array the memory order that NumPy derives from these strides, if they are known."""
        if strides is None:
            self.is_c = None
            return
        self.order = order_like(self.node.shape, strides)
        self.is_c = self.order is None
        self.strides = builder.contiguous(self.node.shape, self.order)

    def may_be(self, others: "Sequence[Storage]") -> bool:
        """Whether this is one of the others, or a branch or loop may have bound it to one of them."""
        return any(storage is other for storage in self._chosen() for other in others)

    def may_replace(self, others: "Sequence[Storage]") -> bool:
        """Whether this may also be a new array, and surely is no view of another one."""
        chosen = [*self._chosen()]
        is_new = any(not storage.choices and all(storage is not other for other in others) for storage in chosen)
        return is_new and not any(storage.views for storage in chosen)

    def _chosen(self) -> Iterator["Storage"]:
        worklist, seen = [self], set[Storage]()
        while worklist:
            storage = worklist.pop()
            if storage not in seen:
                seen.add(storage)
                worklist += storage.choices
                yield storage

    def note_may_alias(self, other: "Storage", *, is_whole: bool = False) -> None:
        """Record that the other storage may be a view of this one, or, if `is_whole`, exactly this one."""
        self.may_aliases.append(other)
        other.may_aliases.append(self)
        if is_whole:
            self.whole_aliases.append(other)

    def is_whole_alias(self, other: "Storage") -> bool:
        """Whether the two storages, if they alias, are exactly the same memory."""
        known = [*(alias is other for alias in self.whole_aliases), *(alias is self for alias in other.whole_aliases)]
        return sum(known) == sum(alias is other for alias in self.may_aliases)


class View:
    """All of a storage, a region of another view (with an index map), or another view reshaped (without one)."""

    __slots__ = ("_made", "_of", "is_readonly", "map", "parent", "shape", "storage")

    def __init__(
        self,
        storage: Storage,
        shape: Sequence[Number],
        parent: "View | None" = None,
        index_map: IndexMap | None = None,
        is_readonly: bool = False,
    ) -> None:
        self.storage, self.shape = storage, tuple(shape)
        self.parent, self.map, self.is_readonly = parent, index_map, is_readonly
        self._of: Node | None = None
        self._made: Node | None = None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:  # noqa: ARG002
        """`ndarray.view`, where traced code calls it: array proxies have this object under the same name."""
        raise UnsupportedError("ndarray.view")

    @property
    def node(self) -> Node:
        """The current value of the view."""
        if self.parent is None:
            self.storage.is_read = True
            return self.storage.node
        if self._made is None or self._of is not self.storage.node:
            base = self.parent.node
            self._made = (
                builder.reshape(base, self.shape) if self.map is None else builder.view(base, self.map, self.shape)
            )
            self._of = self.storage.node
        return self._made

    @property
    def dtype(self) -> str:
        return self.storage.node.dtype if self.parent is None else self.parent.dtype

    def region(self, index_map: IndexMap, shape: Sequence[Number], *, is_readonly: bool = False) -> "View":
        """A view of this one."""
        is_readonly = is_readonly or self.is_readonly
        if self.parent is not None and self.map is not None:
            return View(self.storage, shape, self.parent, builder.composed(self.map, index_map), is_readonly)
        return View(self.storage, shape, self, index_map, is_readonly)

    def reshaped(self, shape: Sequence[Number]) -> "View":
        """The view in another shape; requires contiguous elements, or shapes that differ by unit dimensions only."""
        node = builder.reshape(self.node, shape)
        return View(self.storage, node.shape, self, None, self.is_readonly)

    def write(self, value: Node) -> None:
        """Assign a node of the same dtype and shape to the view."""
        if self.is_readonly:
            raise ValueError("assignment destination is read-only")
        if self.parent is None:
            node = self.node
            in_place = value.operation in ("scatter", "update") and value.inputs[0] is node
            # In loops and branches the memory stays that of the previous value: copy another array's into it.
            self.storage.change(value if in_place or not watched.logs else builder.copy(value))
        elif any(same(extent, 0) for extent in self.shape):
            self.storage.change(self.storage.node)
        elif self.map is None:
            self.parent.write(builder.reshape(value, self.parent.shape))
        elif builder.is_identity(self.parent.shape, self.map, self.shape):
            self.parent.write(value)
        else:
            if _has_shared_elements(self.map, self.shape):
                raise UnsupportedError("an assignment to a view whose elements overlap")
            base = self.parent.node
            options = {"map": self.map, "extents": self.shape}
            self.parent.write(Node("update", (base, value), base.dtype, base.shape, options))

    def may_overlap(self) -> bool:
        """Whether two elements of the view may be the same memory, as those of sliding windows."""
        if self.parent is None:
            return False
        return self.parent.may_overlap() or (self.map is not None and _has_shared_elements(self.map, self.shape))

    def strides(self) -> tuple[Number, ...] | None:
        """Strides in elements; None where only NumPy knows them."""
        if self.parent is None:
            if self.storage.strides is not None:
                return self.storage.strides
            return builder.contiguous(self.shape) if self.storage.is_c else None
        outer = self.parent.strides()
        if outer is None:
            return None
        if self.map is None:
            return builder.contiguous(self.shape) if self.parent.is_c() else None
        result: list[Number] = [0] * len(self.shape)
        for distance, (_, steps) in zip(outer, self.map, strict=True):
            for own, step in steps:
                result[own] = result[own] + distance * step
        return tuple(result)

    def is_c(self) -> bool | None:
        """Whether elements are C-contiguous; None where only NumPy knows."""
        if self.parent is None and self.storage.is_c is not None:
            return self.storage.is_c
        strides = self.strides()
        if strides is None:
            return None
        if any(same(extent, 0) for extent in self.shape):
            return True
        expected: Number = 1
        for extent, stride in zip(reversed(self.shape), reversed(strides), strict=True):
            if same(extent, 1):
                continue
            if not same(stride, expected):
                is_next = dim_bounds.is_surely(stride - expected, "==")
                if not is_next:
                    return is_next
            expected = expected * extent
        return True

    def is_in_c_order(self) -> bool:
        """Whether no dimension surely has larger strides than one before it: NumPy lays out results of it in C order.

        Broadcast dimensions have none. There may be gaps, as in slices.
        """
        strides = self.strides()
        if strides is None:
            return False
        before: Number | None = None
        for extent, stride in zip(self.shape, strides, strict=True):
            if same(extent, 1) or same(stride, 0):
                continue
            size = stride if dim_bounds.is_surely(stride, ">=") else -stride
            if not all(
                dim_bounds.is_surely(one, ">=") for one in ((size,) if before is None else (size, before - size))
            ):
                return False
            before = size
        return True


def _has_shared_elements(index_map: IndexMap, shape: Sequence[Number]) -> bool:
    """Whether a map may show an element twice: which assignment to it is the last one depends on NumPy's order."""
    unknown = {dimension for dimension, extent in enumerate(shape) if not same(extent, 1)}
    for _, steps in sorted(index_map, key=lambda one: len(one[1])):
        moving = [(abs(value_of(step)), dimension, step) for dimension, step in steps if dimension in unknown]
        reach: Number = 0  # of the dimensions with smaller steps
        for _, dimension, step in sorted(moving, key=lambda one: one[0]) if len(moving) > 1 else ():
            size = step if dim_bounds.is_surely(step, ">=") else -step
            if not dim_bounds.is_surely(size - reach, ">"):
                return True
            reach = reach + size * (shape[dimension] - 1)
        unknown.difference_update(dimension for _, dimension, _ in moving)
    return bool(unknown)


class PlaneView(View):
    """The real or imaginary parts of a view of complex numbers: floats two apart. `name`: ``real`` or ``imag``."""

    __slots__ = ("name",)

    def __init__(self, parent: View, name: str) -> None:
        super().__init__(parent.storage, parent.shape, parent, None, parent.is_readonly)
        self.name = name

    @property
    def node(self) -> Node:
        if self._made is None or self._of is not self.storage.node:
            assert self.parent is not None
            self._made, self._of = self._plane(self.name), self.storage.node
        return self._made

    def _plane(self, name: str) -> Node:
        assert self.parent is not None
        base = self.parent.node
        return Node(name, (base,), PLANES[base.dtype], base.shape)

    @property
    def dtype(self) -> str:
        assert self.parent is not None
        return PLANES[self.parent.dtype]

    def region(self, index_map: IndexMap, shape: Sequence[Number], *, is_readonly: bool = False) -> View:
        """A view of this one: the parts of a view of the complex numbers."""
        assert self.parent is not None
        return PlaneView(self.parent.region(index_map, shape, is_readonly=is_readonly), self.name)

    def write(self, value: Node) -> None:
        """Assign floats; the other parts stay."""
        assert self.parent is not None
        planes = [value if name == self.name else self._plane(name) for name in ("real", "imag")]
        base = self.parent.node
        self.parent.write(Node("complex", planes, base.dtype, base.shape))

    def strides(self) -> tuple[Number, ...] | None:
        assert self.parent is not None
        steps = self.parent.strides()
        return None if steps is None else tuple(2 * step for step in steps)

    def is_c(self) -> bool | None:
        return len(self.shape) == 0 or all(same(extent, 1) for extent in self.shape)
