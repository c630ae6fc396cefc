"""Lists that grow by one element per iteration of counted loops: the elements are the rows of an array."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import as_number, dtype_of, is_number, join_kinds, kind_of
from jitkernels.compiler.capture.functionalization import Storage, watched
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.symbolic_dims import Number, product
from jitkernels.core.frozen_dataclass import frozen_dataclass


@frozen_dataclass
class RowType:
    """The type of the elements: the `kind` of numbers, or an array `like` them; and how many the loops append."""

    kind: Any
    like: Traced | None
    trip_count: Number | None

    @staticmethod
    def of(value: Any, loops: Sequence[Any]) -> "RowType":
        """The type of an element that an iteration of loops appends. UnsupportedError for unsupported elements."""
        kind, like = kind_of(value), None
        if not is_number(kind):
            if type(value) is not Traced or not value.ndim:
                raise UnsupportedError("elements of a list that are neither numbers nor arrays")
            storage = value.view.storage
            if any(storage in log for log in watched.logs) or storage.born < loops[-1].start and storage.leaf is None:
                raise UnsupportedError("a write to an array in a list")
            kind, like = None, value
        trip_counts = [loop.trip_count for loop in loops]
        return RowType(kind, like, None if None in trip_counts else product(trip_counts))

    def allocate(self, tracer: Tracer, values: Sequence[Any]) -> "RowList":
        """A list of values with rows for the elements to come. Raises UnsupportedError for other elements."""
        like, kind, trip_count = self.like, self.kind, self.trip_count
        assert trip_count is not None, "tested before"
        shape: tuple[Number, ...] = like.extents if like is not None else ()
        if any(map(symbolic_dims.is_loop_variant, (*shape, trip_count))):
            raise UnsupportedError("a list whose length, or that of its elements, depends on an enclosing loop")
        for element in values:
            if like is None:
                kind = join_kinds("an element", kind, kind_of(element))
            elif type(element) is not Traced or not _has_rows(element, like.dtype, shape):
                raise UnsupportedError("a list of elements of different types or shapes")
        if not values and not intervals.guarded_at_least_zero(trip_count - 1):
            raise UnsupportedError("a list that may be empty")
        dtype = dtype_of(kind) if like is None else like.node.dtype
        zero = builder.constant(0, dtype)
        rows = trip_count + len(values)
        array = fresh(tracer, builder.broadcast_to(zero, (rows, *shape)))
        for index, element in enumerate(values):
            array[index] = element
            if like is not None:
                element.view.storage.may_aliases.append(array.view.storage)
        result = RowList(array, None if like is not None else kind, as_symint(tracer, rows), len(values))
        for element in values if like is None else ():
            result.promote(kind_of(element))
        return result


def _has_rows(element: Traced, dtype: Any, shape: Sequence[Number]) -> bool:
    return element.dtype == dtype and symbolic_dims.same_shape(element.extents, shape)


class RowList:
    """The elements of a list that grows in counted loops.

    `kind` is the kind of elements that are numbers; `count` the number of elements after the loop, `first` the one
    before it. `arguments` are those of which elements are views.
    """

    def __init__(self, array: Traced, kind: Any, count: Any, first: int) -> None:
        self.array, self.kind, self.count, self.first = array, kind, count, first
        self.arguments: list[Storage] = []
        self.promoted = array.dtype
        self.is_growing = True
        self.begin()

    def promote(self, kind: Any) -> None:
        """Note the kind of a number: NumPy promotes Python's to the default dtype in an array of the list."""
        self.promoted = np.result_type(self.promoted, dtype_of(kind))

    def begin(self) -> None:
        """Begin an iteration of the outermost loop in which the list grows."""
        self._loops: Sequence[Any] | None = None
        self._last_append: Any = None
        self._appended = 0

    def end(self) -> None:
        """End the trace of the loop. Raises UnsupportedError where an iteration did not append to the list."""
        if self._loops is None:
            raise UnsupportedError("a list grows in some iterations only")
        self.is_growing = False

    def wider_type(self, row: RowType) -> RowType | None:
        """The type that the list needs for another number; None where its own will do. Else raises UnsupportedError."""
        if row.like is None and self.kind is not None:
            kind = join_kinds("an element", self.kind, row.kind)
            return None if kind == self.kind else RowType(kind, None, row.trip_count)
        if (
            row.like is None
            or self.kind is not None
            or not _has_rows(row.like, self.array.dtype, self.array.extents[1:])
        ):
            raise UnsupportedError("a list of different elements")
        return None

    def append(self, value: Any, row: RowType, loops: Sequence[Any], owner: Any) -> None:
        """Append an element in an iteration of loops."""
        self._loops = self._loops or loops
        this_append = loops[-1], loops[-1].iteration_traces
        if self._last_append == this_append or any(a is not b for a, b in zip(self._loops, loops, strict=True)):
            raise UnsupportedError("a list grows at several statements of a loop")
        self._last_append = this_append
        if row.like is None:
            self.promote(row.kind)
        self.array[self._position(loops)] = value if row.like is None else row.like
        if row.like is not None:
            # The list holds this very array: a write to it changes the list.
            storage = row.like.view.storage
            self.arguments += [alias for alias in (storage, *storage.may_aliases) if alias.leaf is not None]
            storage.may_aliases.append(self.array.view.storage)
            for loop in loops:
                loop.lists.append(owner)
        self._appended = 1

    def _position(self, loops: Sequence[Any]) -> Any:
        """The number of elements before this iteration."""
        position: Any = 0
        for loop in loops:
            position = position * as_symint(self.array.tracer, loop.trip_count) + loop.iteration_number
        return position + self.first

    def length(self, loops: Sequence[Any]) -> Any:
        """The number of elements, in an iteration of loops while the list grows."""
        return self._position(loops) + self._appended if self.is_growing else self.count

    @property
    def min_length(self) -> int:
        """The number of elements that surely exist while the list grows."""
        return self.first + self._appended

    def get(self, index: Any) -> Any:
        """Read an element."""
        result = self.array[index]
        if self.kind is not None:
            return as_number(self.array.tracer, result.node, self.kind)
        row = fresh(self.array.tracer, result.node)
        row.view.storage.may_aliases.append(self.array.view.storage)
        if not self.array.tracer.differentiates:
            row.view.storage.may_aliases += self.arguments
        return row

    def reverse(self) -> None:
        """Reverse the order of the elements."""
        self.array = fresh(self.array.tracer, self.array[::-1].node)

    def whole(self) -> Traced:
        """A new array of all elements."""
        if self.is_growing:
            raise UnsupportedError("a list that grows")
        return fresh(self.array.tracer, builder.cast(self.array.node, self.promoted.name))
