"""What an array of a trace is: a view of a storage, whose value changes when any of its views is written to.

A view knows how to be read from what it is a view of, and how that is changed when the view is. So a graph, whose
nodes never change, says what NumPy code does that writes in place: each write gives the storage another node.
"""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.construct import IndexMap, UnknownError
from jitkernels.graph.extents import Number, same
from jitkernels.graph.ir import Node, serial
from jitkernels.graph.layouts import order_like


class Watched(threading.local):
    """Who of this thread wants to know of writes: by the id of each storage, that and its value before the first."""

    logs: tuple[dict[int, "tuple[Storage, Node]"], ...] = ()


watched = Watched()


class Storage:
    """Memory of one array. `leaf` is the number of the argument that it belongs to.

    `is_c`: whether elements lie row by row without gaps, None where only NumPy knows. `doubts` are storages that NumPy
    may have as one with this, so that neither may be written to. `born`: a serial number among those of nodes.
    `is_read`: whether anybody has asked for its value, since who wants to know has said that nobody had.
    """

    __slots__ = (
        "born",
        "choices",
        "doubts",
        "is_c",
        "is_frozen",
        "is_read",
        "leaf",
        "node",
        "order",
        "strides",
        "views",
        "wholes",
        "written",
    )

    def __init__(self, node: Node, leaf: int | None = None, is_c: bool | None = True) -> None:
        self.node, self.leaf = node, leaf
        self.is_c = True if node.ndim < 2 and leaf is None else is_c
        self.strides: tuple[Number, ...] | None = None
        self.order: tuple[int, ...] | None = None
        self.written = self.is_frozen = self.is_read = False
        self.doubts: list[Storage] = []
        self.choices: list[Storage] = []
        self.views = False
        self.wholes: list[Storage] = []
        self.born = serial()

    def change(self, node: Node) -> None:
        """Another value. Raises UnknownError where NumPy might change, or not change, other arrays too."""
        if self.is_frozen:
            raise ValueError("assignment destination is read-only")
        if self.doubts:
            raise UnknownError("a write to an array of which another may be a view or a copy")
        if self.strides is not None and any(
            same(step, 0) and not same(extent, 1)
            for step, extent in zip(self.strides, node.shape, strict=True)
        ):
            raise UnknownError("a write to an argument whose elements lie on one another")
        self.log()
        self.node, self.written = node, True

    def log(self) -> None:
        """Tell who wants to know what the value is before a write."""
        for log in watched.logs:
            log.setdefault(id(self), (self, self.node))

    def lie_like(self, strides: Sequence[Number] | None) -> None:
        """Have a new array lie as NumPy's do that are like one with these strides, if they are known."""
        if strides is None:
            self.is_c = None
            return
        self.order = order_like(self.node.shape, strides)
        self.is_c = self.order is None
        self.strides = construct.contiguous(self.node.shape, self.order)

    def may_be(self, others: "Sequence[Storage]") -> bool:
        """Whether this is, or stands for by the choice of a branch or loop, one of some others."""
        return any(one is other for one in self._chosen() for other in others)

    def may_replace(self, others: "Sequence[Storage]") -> bool:
        """Whether it stands for a new array as well, and for no view of any."""
        chosen = [*self._chosen()]
        is_new = any(not one.choices and all(one is not other for other in others) for one in chosen)
        return is_new and not any(one.views for one in chosen)

    def _chosen(self) -> Iterator["Storage"]:
        waiting, seen = [self], set[int]()
        while waiting:
            one = waiting.pop()
            if id(one) not in seen:
                seen.add(id(one))
                waiting += one.choices
                yield one

    def doubt(self, other: "Storage", *, is_whole: bool = False) -> None:
        """Remember that the other may be a view of this, or, if `is_whole`, nothing but this itself."""
        self.doubts.append(other)
        other.doubts.append(self)
        if is_whole:
            self.wholes.append(other)

    def is_whole(self, other: "Storage") -> bool:
        """Whether one of the two can be nothing of the other but all of it."""
        known = [*(one is other for one in self.wholes), *(one is self for one in other.wholes)]
        return sum(known) == sum(one is other for one in self.doubts)


class View:
    """All of a storage, a region of another view (with a map), or another view in another shape (without one)."""

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
        """`ndarray.view`, where traced code asks an array for it: arrays have this object by the same name."""
        raise UnknownError("ndarray.view")

    @property
    def node(self) -> Node:
        """What is seen now."""
        if self.parent is None:
            self.storage.is_read = True
            return self.storage.node
        if self._made is None or self._of is not self.storage.node:
            base = self.parent.node
            self._made = (
                construct.reshape(base, self.shape)
                if self.map is None
                else construct.view(base, self.map, self.shape)
            )
            self._of = self.storage.node
        return self._made

    def region(self, index_map: IndexMap, shape: Sequence[Number], *, is_readonly: bool = False) -> "View":
        """A view of this one."""
        is_readonly = is_readonly or self.is_readonly
        if self.parent is not None and self.map is not None:
            return View(
                self.storage, shape, self.parent, construct.composed(self.map, index_map), is_readonly
            )
        return View(self.storage, shape, self, index_map, is_readonly)

    def reshaped(self, shape: Sequence[Number]) -> "View":
        """All of this view in another shape; expected elements without gaps, or shapes that differ by ones alone."""
        node = construct.reshape(self.node, shape)
        return View(self.storage, node.shape, self, None, self.is_readonly)

    def write(self, value: Node) -> None:
        """Change what is seen to a node of the same dtype and shape."""
        if self.is_readonly:
            raise ValueError("assignment destination is read-only")
        if self.parent is None:
            node = self.node
            in_place = value.operation in ("scatter", "update") and value.inputs[0] is node
            # In loops and branches memory is that of the value before: another array's is copied into it.
            self.storage.change(value if in_place or not watched.logs else construct.copy(value))
        elif any(same(extent, 0) for extent in self.shape):
            self.storage.change(self.storage.node)
        elif self.map is None:
            self.parent.write(construct.reshape(value, self.parent.shape))
        elif construct.is_identity(self.parent.shape, self.map, self.shape):
            self.parent.write(value)
        else:
            base = self.parent.node
            options = {"map": self.map, "extents": self.shape}
            self.parent.write(Node("update", (base, value), base.dtype, base.shape, options))

    def strides(self) -> tuple[Number, ...] | None:
        """Distances in elements, None where only NumPy knows them."""
        if self.parent is None:
            if self.storage.strides is not None:
                return self.storage.strides
            return c_strides(self.shape) if self.storage.is_c else None
        outer = self.parent.strides()
        if outer is None:
            return None
        if self.map is None:
            return c_strides(self.shape) if self.parent.is_c() else None
        result: list[Number] = [0] * len(self.shape)
        for distance, (_, steps) in zip(outer, self.map, strict=True):
            for own, step in steps:
                result[own] = result[own] + distance * step
        return tuple(result)

    def is_c(self) -> bool | None:
        """Whether elements lie row by row without gaps; None where only NumPy knows."""
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
            if not same(stride, expected) and not bool(stride == expected):
                return False
            expected = expected * extent
        return True


def c_strides(shape: Sequence[Number]) -> tuple[Number, ...]:
    result: list[Number] = []
    step: Number = 1
    for extent in reversed(tuple(shape)):
        result.append(step)
        step = step * extent
    return tuple(reversed(result))
