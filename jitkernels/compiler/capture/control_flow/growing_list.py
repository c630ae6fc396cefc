"""Lists that grow by one element per iteration of a counted loop: rows of an array of the compiled code.

``found = []`` and ``[f(x) for x in a]`` construct a `GrowableList`. It is an ordinary list until a compiled loop
appends to
it. Operations on a grown list other than those here fall back to Python.
"""

from collections.abc import Callable, Iterator
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.carried_trees import Leaf
from jitkernels.compiler.capture.control_flow.dynamic_list import DynamicList, Elements, Later, elements_like
from jitkernels.compiler.capture.control_flow.loop_state import (
    UNSET,
    as_number,
    dtype_of,
    is_number,
    join_kinds,
    kind_of,
)
from jitkernels.compiler.capture.control_flow.region_transaction import name_of
from jitkernels.compiler.capture.control_flow.tagged_union import Undecided
from jitkernels.compiler.capture.functionalization import watched
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.symint import Whole, as_symint
from jitkernels.compiler.capture.trace_context import INITIAL_TAPE_CAPACITY, Tracer, current
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number, product
from jitkernels.compiler.ir.unsupported import ConcretizationError


class ListGrowsError(UnknownError):
    """A list grows in a loop, which is traced again with memory for the list."""

    def __init__(self, grown: "GrowableList", kind: Any, like: Traced | None, rounds: Number) -> None:
        super().__init__("a list grows in a loop")
        self.grown, self.kind, self.like, self.rounds = grown, kind, like, rounds
        self.elements: Elements | None = None
        self.is_queue = False


class EmptyError(UnknownError):
    """A growing list has no elements as far as tracing knows, so their types are unknown."""


def needs_dynamic_length(grown: "GrowableList", elements: Elements, *, is_queue: bool) -> ListGrowsError:
    """The error that restarts the trace with a list whose length the compiled code counts."""
    error = ListGrowsError(grown, None, None, 0)
    error.elements, error.is_queue = elements, is_queue
    return error


class GrowableList(list[Any], Undecided):
    """A list of a trace. `array` is None while it is an ordinary list; afterwards its rows are the elements.

    `kind` is the kind of elements that are numbers; `count` the number of elements after the loop.
    """

    def __init__(self, values: Any = ()) -> None:
        super().__init__(values)
        tracer = current()
        self.depth = tracer.depth if tracer is not None else 0
        self.array: Traced | None = None
        self.kind: Any = None
        self.count: Any = None
        self.is_growing = False
        self.site: Any = None
        self.last: Any = None
        self.added = 0
        self.counted: DynamicList | None = None

    # Tracing of loops

    def back(self, tracer: Tracer, error: ListGrowsError) -> None:
        """Allocate rows for the elements to come. Raises UnknownError for elements that are no rows."""
        values = list(self)
        if error.elements is not None:
            self.counted = DynamicList(tracer, error.elements, is_queue=error.is_queue)
            self.counted.fill(values)
            return
        kind, like = error.kind, error.like
        shape: tuple[Number, ...] = like.extents if like is not None else ()
        if any(map(symbolic_dims.is_moving, (*shape, error.rounds))):
            raise UnknownError("a list whose length, or that of its elements, depends on an enclosing loop")
        for element in values:
            if like is None:
                kind = join_kinds("an element", kind, kind_of(element))
            elif (
                type(element) is not Traced
                or element.dtype != like.dtype
                or not symbolic_dims.same_shape(element.extents, shape)
            ):
                raise UnknownError("a list of elements of different types or shapes")
        if not values and not intervals.guarded_at_least_zero(error.rounds - 1):
            raise UnknownError("a list that may be empty")
        dtype = dtype_of(kind) if like is None else like.node.dtype
        self.count = as_symint(tracer, error.rounds + len(values))
        nothing = builder.constant(0, dtype)
        self.array = fresh(tracer, builder.broadcast_to(nothing, (error.rounds + len(values), *shape)))
        self.kind = kind if like is None else None
        for index, element in enumerate(values):
            self.array[index] = element
            if like is not None:
                element.view.storage.may_aliases.append(self.array.view.storage)
        self.is_growing = True

    def begin(self) -> None:
        """Begin an iteration of the outermost loop in which the list grows."""
        self.site = self.last = None
        self.added = 0

    def end(self) -> None:
        """End the trace of the loop. Raises UnknownError where an iteration did not append to the list."""
        if self.counted is not None:
            return
        if self.site is None:
            raise UnknownError("a list grows in some iterations only")
        self.is_growing = False

    def restore(self) -> None:
        """Become an ordinary list again."""
        self.array, self.is_growing, self.counted = None, False, None

    def append(self, value: Any) -> None:
        tracer = current()
        if self.counted is not None:
            self._expect(elements_like(value, self.counted.elements))
            self.counted.append(value)
        elif tracer is None or (tracer.depth == self.depth and self.array is None):
            super().append(value)
        else:
            try:
                self._append(tracer, value)
            except ListGrowsError:
                raise
            except UnknownError as error:
                self._count(error, value)

    def _count(self, error: UnknownError, *values: Any, is_queue: bool = False) -> None:
        """Restart with a list whose length the compiled code counts and that holds `values`; else raise `error`."""
        elements = None
        try:
            for element in (*list.__iter__(self), *values):
                elements = elements_like(element, elements)
        except UnknownError:
            raise error from None
        if elements is None and self.array is not None and self.kind is not None:
            elements = Elements(Leaf(UNSET), (self.kind,))
        if elements is None:
            raise EmptyError(str(error))
        if len(self.items()) > INITIAL_TAPE_CAPACITY:
            raise error
        raise needs_dynamic_length(self, elements, is_queue=is_queue)

    def items(self) -> list[Any]:
        """The elements from before the loop."""
        return [*list.__iter__(self)]

    def _expect(self, elements: Elements) -> None:
        """Restart the trace where elements have more kinds than known."""
        assert self.counted is not None, "the caller checks it"
        known = self.counted.elements
        if len(known.kinds) != len(elements.kinds) or any(
            a is not b and a != b for a, b in zip(known.kinds, elements.kinds, strict=True)
        ):
            raise needs_dynamic_length(self, elements, is_queue=self.counted.is_queue)

    def _append(self, tracer: Tracer, value: Any) -> None:
        loops = [loop for loop in tracer.loops if loop.depth > self.depth]
        if len(loops) != tracer.depth - self.depth or not loops or (self.array is not None and not self.is_growing):
            raise UnknownError(
                f"the list {name_of(self)!r} grows in a branch, or after a loop in which it has grown: "
                "write to an array that is large enough"
            )
        kind, like = _like(value, loops[-1].start)
        trip_counts = [loop.trip_count for loop in loops]
        if None in trip_counts:
            raise UnknownError(
                f"the list {name_of(self)!r} grows in a loop that may be left early, or whose trip count is not known"
            )
        if self.array is None:
            raise ListGrowsError(self, kind, like, product(trip_counts))
        if like is None:
            if self.kind is None:
                raise UnknownError("a list of different elements")
            if join_kinds("an element", self.kind, kind) != self.kind:
                raise ListGrowsError(self, join_kinds("an element", self.kind, kind), None, product(trip_counts))
        elif (
            self.kind is not None
            or like.dtype != self.array.dtype
            or not symbolic_dims.same_shape(like.extents, self.array.extents[1:])
        ):
            raise UnknownError("a list of different elements")
        if self.site is None:
            self.site = loops
        last = loops[-1], loops[-1].iteration_traces
        if self.last == last or any(a is not b for a, b in zip(self.site, loops, strict=True)):
            raise UnknownError("a list grows at several statements of a loop")
        self.last = last
        self.array[self._position(tracer)] = value if like is None else like
        if like is not None:
            # The list holds this very array: a write to it changes the list.
            like.view.storage.may_aliases.append(self.array.view.storage)
            for loop in loops:
                loop.lists.append(self)
        self.added = 1

    def _position(self, tracer: Tracer) -> Any:
        """The number of elements before this iteration."""
        position: Any = 0
        for loop in (outer for outer in tracer.loops if outer.depth > self.depth):
            position = position * as_symint(tracer, loop.trip_count) + loop.iteration_number
        return position + list.__len__(self)

    # Other uses

    @property
    def length(self) -> Any:
        """The number of elements."""
        tracer = current()
        if self.counted is not None:
            return self.counted.length
        if self.array is None or tracer is None:
            return list.__len__(self)
        if not self.is_growing:
            return self.count
        if sum(loop.depth > self.depth for loop in tracer.loops) != 1:
            self._count(UnknownError("a list that grows in a nested loop is read"))
        return self._position(tracer) + self.added

    def item(self, index: Any) -> Any:
        """An element."""
        if self.counted is not None:
            return self._counted_item(self.counted, index)
        assert self.array is not None, "the caller checks it"
        if self.is_growing:
            behind = -index if type(index) is int else 0
            if not 0 < behind <= list.__len__(self) + self.added:
                self._count(UnknownError("an element of a list that grows"))
            index = self.length - behind
        elif type(index) not in (int, Whole) and kind_of(index) is not int:
            if type(index) is slice and index == slice(None, None, -1):
                return Later(list, self)[index]
            raise UnknownError("a slice of a list that has grown")
        result = self.array[index]
        if self.kind is not None:
            return as_number(self.array.tracer, result.node, self.kind)
        row = fresh(self.array.tracer, result.node)
        row.view.storage.may_aliases.append(self.array.view.storage)
        return row

    def _counted_item(self, result: DynamicList, index: Any) -> Any:
        if isinstance(index, slice):
            return Later(list, result.finished())[index]
        return result.get(index)

    def whole(self) -> Traced:
        """A new array of all elements."""
        if self.array is None or self.is_growing:
            raise UnknownError("a list that grows")
        return fresh(self.array.tracer, self.array.node)

    def _plain(self) -> None:
        if is_array_backed(self):
            raise UnknownError("a list that has grown in a loop")

    def __len__(self) -> int:
        self._plain()
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        self._plain()
        return super().__iter__()

    def __repr__(self) -> str:
        self._plain()
        return list.__repr__(self)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index) if is_array_backed(self) else super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        tracer = current()
        if self.counted is not None:
            self._expect(elements_like(value, self.counted.elements))
            self.counted.put(index, value)
        elif tracer is None or (tracer.depth == self.depth and self.array is None and type(index) in (int, slice)):
            super().__setitem__(index, value)
        else:
            self._count(UnknownError("an element of a list that grows is assigned to"), value)

    def pop(self, index: Any = -1) -> Any:
        tracer = current()
        if self.counted is not None:
            if type(index) is not int or index not in (-1, 0):
                raise UnknownError("list.pop of other elements than the first and last")
            if index == 0 and not self.counted.is_queue:
                raise needs_dynamic_length(self, self.counted.elements, is_queue=True)
            return self.counted.pop(index)
        if tracer is None or (tracer.depth == self.depth and self.array is None):
            return super().pop(index)
        self._count(UnknownError("list.pop of a list that grows"), is_queue=index == 0)
        return None

    def extend(self, values: Any) -> None:
        if not is_array_backed(self) and (current() is None or current().depth == self.depth):  # type: ignore[union-attr]
            super().extend(values)
            return
        if type(values) not in (list, tuple):
            raise UnknownError("list.extend of a list that grows, by an object that is no list or tuple")
        for value in values:
            self.append(value)

    def __iadd__(self, values: Any) -> Any:  # type: ignore[misc]  # like list
        self.extend(values)
        return self

    def reverse(self) -> None:
        tracer = current()
        if self.counted is not None and tracer is not None and tracer.depth == self.depth:
            self.counted.is_reversed = not self.counted.is_reversed
        elif is_array_backed(self) or (tracer is not None and tracer.depth != self.depth):
            raise UnknownError("list.reverse of a list that grows in a loop, or in a branch")
        else:
            super().reverse()

    @property
    def is_decided(self) -> bool:
        return self.counted is None and not self.is_growing

    def truth(self, of: Callable[[Any], Node]) -> Node:  # noqa: ARG002  # for numbers
        if self.counted is None:
            assert self.array is not None, "it grows"
            self._count(UnknownError("whether there are elements in a list that grows"))
        assert self.counted is not None, "otherwise the trace restarts"
        return self.counted.truth()

    def __bool__(self) -> bool:
        if self.counted is not None:
            raise ConcretizationError("whether there are elements in a list that has grown")
        if self.array is None:
            return super().__len__() > 0
        return bool(self.length > 0)


def _rejecting(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: GrowableList, *arguments: Any, **keywords: Any) -> Any:
        tracer = current()
        if is_array_backed(self) or (tracer is not None and tracer.depth != self.depth):
            raise UnknownError(f"list.{name} of a list that grows in a loop, or in a branch")
        return method(self, *arguments, **keywords)

    return call


for _name in (
    "__add__", "__contains__", "__delitem__", "__eq__", "__ge__", "__gt__", "__imul__", "__le__", "__lt__",
    "__mul__", "__ne__", "__reversed__", "__rmul__", "clear", "copy", "count", "index", "insert", "remove", "sort",
):  # fmt: skip
    if _name != "count":  # the number of elements
        setattr(GrowableList, _name, _rejecting(_name))


def _like(value: Any, start: int) -> tuple[Any, Traced | None]:
    """The kind of an element that is a number; the array otherwise. Raises UnknownError for other objects."""
    if isinstance(value, GrowableList):
        value = value.whole()
    kind = kind_of(value)
    if is_number(kind):
        return kind, None
    if type(value) is not Traced or not value.ndim:
        raise UnknownError("elements of a list that are neither numbers nor arrays")
    storage = value.view.storage
    if any(id(storage) in log for log in watched.logs) or storage.born < start and storage.leaf is None:
        raise UnknownError("a write to an array in a list")
    return None, value


def finished(values: GrowableList) -> list[Any]:
    """The result of a list comprehension."""
    return values if is_array_backed(values) else list(values)


def is_array_backed(value: Any) -> bool:
    """Whether a value is a list whose elements only the compiled code knows."""
    return type(value) is GrowableList and (value.array is not None or value.counted is not None)
