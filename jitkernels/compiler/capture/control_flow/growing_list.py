"""Lists of a trace, which may grow in compiled loops.

``squares = []`` and ``[f(x) for x in a]`` construct a `GrowableList`. It is an ordinary list until a compiled loop
appends to it. Then its elements become the `rows` of an array if each iteration of a counted loop appends one element,
or else a `dynamic` list, whose length the compiled code counts. Operations on a grown list other than those here fall
back to Python.
"""

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.carried_trees import UNSET_FORM
from jitkernels.compiler.capture.control_flow.dynamic_list import DeferredResult, DynamicList, ElementType, element_type
from jitkernels.compiler.capture.control_flow.loop_state import State, kind_of
from jitkernels.compiler.capture.control_flow.region_transaction import name_of
from jitkernels.compiler.capture.control_flow.row_list import RowList, RowType
from jitkernels.compiler.capture.control_flow.tagged_union import Undecided
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import INITIAL_TAPE_CAPACITY, Tracer, current
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import ConcretizationError


class ListGrowsError(UnsupportedError):
    """A list grows in a loop, which is traced again with memory for elements of this type."""

    def __init__(self, grown: "GrowableList", elements: RowType | ElementType) -> None:
        super().__init__("a list grows in a loop")
        self.grown, self.elements = grown, elements


class EmptyListError(UnsupportedError):
    """A growing list has no elements as far as tracing knows, so their types are unknown."""


class GrowableList(list[Any], Undecided):
    """A list of a trace. `rows` and `dynamic` are None while it is an ordinary list."""

    stands_for = list

    def __init__(self, values: Any = ()) -> None:
        super().__init__(values)
        tracer = current()
        self.depth = tracer.depth if tracer is not None else 0
        self.rows: RowList | None = None
        self.dynamic: DynamicList | None = None

    # Tracing of loops

    def allocate(self, tracer: Tracer, elements: RowType | ElementType) -> None:
        """Allocate memory for elements. Raises UnsupportedError for elements that are no rows."""
        if self.dynamic is not None and self.dynamic.has_changed:
            if isinstance(elements, RowType):
                raise UnsupportedError("a list that has grown in another loop")
            self.dynamic = self.dynamic.converted(elements)
            return
        self.restore()
        if isinstance(elements, RowType):
            self.rows = elements.allocate(tracer, self.initial_elements())
        else:
            self.dynamic = DynamicList(tracer, elements, self.initial_elements())

    def restore(self) -> None:
        """Become an ordinary list again."""
        self.rows = self.dynamic = None

    @property
    def is_growing(self) -> bool:
        return self.rows is not None and self.rows.is_growing

    def initial_elements(self) -> list[Any]:
        """The elements from before the loop."""
        return [*list.__iter__(self)]

    def _is_ordinary(self) -> bool:
        """Whether it is an ordinary list here, outside of the regions that may run an operation conditionally."""
        tracer = current()
        return not is_array_backed(self) and (tracer is None or tracer.depth == self.depth)

    def _loops(self) -> list[Any]:
        """The loops that are being traced in which the list may grow."""
        tracer = current()
        return [] if tracer is None else [loop for loop in tracer.loops if loop.depth > self.depth]

    def append(self, value: Any) -> None:
        if self.dynamic is not None:
            self._expect(element_type(value, self.dynamic.elements))
            self.dynamic.append(value)
        elif self._is_ordinary() or current() is None:
            super().append(value)
        else:
            try:
                self._append_row(value)
            except ListGrowsError:
                raise
            except UnsupportedError as error:
                self._restart_dynamic(error, value)

    def _append_row(self, value: Any) -> None:
        loops, tracer = self._loops(), current()
        assert tracer is not None, "the caller checks it"
        if len(loops) != tracer.depth - self.depth or not loops or (self.rows is not None and not self.rows.is_growing):
            raise UnsupportedError(
                f"the list {name_of(self)!r} grows in a branch, or after a loop in which it has grown: "
                "write to an array that is large enough"
            )
        if isinstance(value, GrowableList):
            value = value.whole()
        row = RowType.of(value, loops)
        if row.trip_count is None:
            raise UnsupportedError(
                f"the list {name_of(self)!r} grows in a loop that may be left early, or whose trip count is not known"
            )
        if self.rows is None:
            raise ListGrowsError(self, row)
        wider_type = self.rows.wider_type(row)
        if wider_type is not None:
            raise ListGrowsError(self, wider_type)
        self.rows.append(value, row, loops, self)

    def _restart_dynamic(self, error: UnsupportedError, *values: Any, is_queue: bool = False) -> NoReturn:
        """Restart with a list whose length the compiled code counts and that holds `values`; else raise `error`."""
        elements = None
        try:
            for element in (*self.initial_elements(), *values):
                elements = element_type(element, elements)
        except UnsupportedError:
            raise error from None
        if elements is None and self.rows is not None and self.rows.kind is not None:
            elements = ElementType(UNSET_FORM, (self.rows.kind,))
        if elements is None:
            raise EmptyListError(str(error))
        if len(self.initial_elements()) > INITIAL_TAPE_CAPACITY:
            raise error
        raise ListGrowsError(self, elements._replace(is_queue=is_queue))

    def _expect(self, elements: ElementType) -> None:
        """Restart the trace where elements have more kinds than known."""
        assert self.dynamic is not None, "the caller checks it"
        known = self.dynamic.elements
        if len(known.kinds) != len(elements.kinds) or any(
            a is not b and a != b for a, b in zip(known.kinds, elements.kinds, strict=True)
        ):
            raise ListGrowsError(self, elements)

    # Other uses

    @property
    def length(self) -> Any:
        if self.dynamic is not None:
            return self.dynamic.length
        if self.rows is None or current() is None:
            return list.__len__(self)
        loops = self._loops()
        if self.rows.is_growing and len(loops) != 1:
            self._restart_dynamic(UnsupportedError("a list that grows in a nested loop is read"))
        return self.rows.length(loops)

    def item(self, index: Any) -> Any:
        """An element of a grown list."""
        if self.dynamic is not None:
            if isinstance(index, slice):
                return DeferredResult(list, self.dynamic.snapshot())[index]
            return self.dynamic.get(index)
        assert self.rows is not None, "the caller checks it"
        if self.rows.is_growing:
            behind = -index if type(index) is int else 0
            if not 0 < behind <= self.rows.min_length:
                self._restart_dynamic(UnsupportedError("an element of a list that grows"))
            index = self.length - behind
        elif type(index) not in (int, SymInt) and kind_of(index) is not int:
            if type(index) is slice and index == slice(None, None, -1):
                return DeferredResult(list, self)[index]
            raise UnsupportedError("a slice of a list that has grown")
        return self.rows.get(index)

    def whole(self) -> Any:
        """A new array of all elements."""
        if self.rows is None:
            raise UnsupportedError("a list that grows")
        return self.rows.whole()

    def _reject_grown(self) -> None:
        if is_array_backed(self):
            raise UnsupportedError("a list that has grown in a loop")

    def __len__(self) -> int:
        self._reject_grown()
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        self._reject_grown()
        return super().__iter__()

    def __repr__(self) -> str:
        self._reject_grown()
        return list.__repr__(self)

    def __getitem__(self, index: Any) -> Any:
        return self.item(index) if is_array_backed(self) else super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        if self.dynamic is not None:
            self._expect(element_type(value, self.dynamic.elements))
            self.dynamic.put(index, value)
        elif current() is None or (self._is_ordinary() and type(index) in (int, slice)):
            super().__setitem__(index, value)
        else:
            self._restart_dynamic(UnsupportedError("an element of a list that grows is assigned to"), value)

    def pop(self, index: Any = -1) -> Any:
        if self.dynamic is not None:
            if type(index) is not int or index not in (-1, 0):
                raise UnsupportedError("list.pop of other elements than the first and last")
            if index == 0 and not self.dynamic.elements.is_queue:
                raise ListGrowsError(self, self.dynamic.elements._replace(is_queue=True))
            return self.dynamic.pop(index)
        if current() is not None and not self._is_ordinary():
            self._restart_dynamic(UnsupportedError("list.pop of a list that grows"), is_queue=index == 0)
        return super().pop(index)

    def extend(self, values: Any) -> None:
        if self._is_ordinary():
            super().extend(values)
            return
        if type(values) is Traced and values.ndim and type(values.extents[0]) is int:
            values = [values[i] for i in range(values.extents[0])]
        if type(values) in (list, tuple):
            for value in values:
                self.append(value)
        elif type(values) is GrowableList and not is_array_backed(values):
            self.extend(values.initial_elements())
        else:
            SERVICES["for"](values, None, self.append, State((), lambda: (), lambda _: None, 0))

    def __iadd__(self, values: Any) -> Any:  # type: ignore[misc]  # like list
        self.extend(values)
        return self

    def reverse(self) -> None:
        tracer = current()
        if self.dynamic is not None and tracer is not None and tracer.depth == self.depth:
            self.dynamic.is_reversed = not self.dynamic.is_reversed
        elif self._is_ordinary():
            super().reverse()
        elif self.rows is not None and not self.rows.is_growing and tracer is not None and tracer.depth == self.depth:
            self.rows.reverse()
        else:
            raise UnsupportedError("list.reverse of a list that grows in a loop, or in a branch")

    @property
    def is_decided(self) -> bool:
        return self.dynamic is None and not self.is_growing

    def truth(self, of: Callable[[Any], Node]) -> Node:  # noqa: ARG002  # for numbers
        if self.dynamic is None:
            self._restart_dynamic(UnsupportedError("whether there are elements in a list that grows"))
        return self.dynamic.truth()

    def __bool__(self) -> bool:
        if self.dynamic is not None:
            raise ConcretizationError("whether there are elements in a list that has grown")
        return super().__len__() > 0 if self.rows is None else bool(self.length > 0)


def _rejecting(name: str) -> Callable[..., Any]:
    method = getattr(list, name)

    def call(self: GrowableList, *arguments: Any, **keywords: Any) -> Any:
        if not self._is_ordinary():
            raise UnsupportedError(f"list.{name} of a list that grows in a loop, or in a branch")
        return method(self, *arguments, **keywords)

    return call


for _name in (
    "__add__", "__contains__", "__delitem__", "__eq__", "__ge__", "__gt__", "__imul__", "__le__", "__lt__",
    "__mul__", "__ne__", "__reversed__", "__rmul__", "clear", "copy", "count", "index", "insert", "remove", "sort",
):  # fmt: skip
    setattr(GrowableList, _name, _rejecting(_name))


def is_array_backed(value: Any) -> bool:
    """Whether a value is a list whose elements only the compiled code knows."""
    return type(value) is GrowableList and (value.rows is not None or value.dynamic is not None)
