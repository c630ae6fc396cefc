"""Lists that grow and shrink as the compiled code runs: arrays with spare capacity, and the number of elements.

Each number in an element has an array of its own; a tuple has one array per item. Where the capacity is exceeded, the
call restarts with a larger one, like the tapes of derivatives.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.carried_trees import (
    Composite,
    Form,
    Leaf,
    Parts,
    form_of,
    join_forms,
    leaves_of,
    unflatten,
)
from jitkernels.compiler.capture.control_flow.loop_state import (
    UNSET,
    State,
    Unset,
    as_number,
    dtype_of,
    is_number,
    kind_of,
    node_of,
)
from jitkernels.compiler.capture.control_flow.tagged_union import OTHER, Choice
from jitkernels.compiler.capture.control_flow.trace_branch import choose
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.symint import Whole
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnknownError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.core.frozen_dataclass import record

END, BEGIN = 0, 1
"""Indices into `ends`: the end of the elements, and the index of the first one."""


class Elements(NamedTuple):
    """The type of elements: their form, and the kinds of the numbers in them."""

    form: Form
    kinds: tuple[Any, ...]


def elements_like(value: Any, before: Elements | None) -> Elements:
    """The common type of `before` and an element with this value. Raises UnknownError for unsupported elements."""
    form = form_of(value) if before is None else join_forms(before.form, form_of(value))
    if form is None or not _is_immutable(form):
        raise UnknownError("a list of elements of different types or shapes")
    leaves = leaves_of(value, form)
    assert leaves is not None, "the form covers the value"
    kinds = [kind_of(leaf) for leaf in leaves]
    if before is not None and len(before.kinds) == len(kinds):
        kinds = [b if a is Unset else a for a, b in zip(before.kinds, kinds, strict=True)]
        if any(kind_of(leaf) not in (kind, Unset) for leaf, kind in zip(leaves, kinds, strict=True)):
            raise UnknownError("a list of elements of different types")
    if not kinds or not all(is_number(kind) or leaf is UNSET for kind, leaf in zip(kinds, leaves, strict=True)):
        raise UnknownError("elements of a list that are not numbers")
    return Elements(form, tuple(kinds))


def _is_immutable(form: Form) -> bool:
    """Whether nothing in an element is mutable."""
    if isinstance(form, Parts):
        return issubclass(form.kind, tuple) and all(map(_is_immutable, form.parts))
    if isinstance(form, Choice):
        return form.other is None or _is_immutable(form.other)
    return isinstance(form, Leaf)


@record
class ListSnapshot(Composite):
    """A snapshot of the elements: their arrays, and the indices of their begin and end."""

    elements: Elements
    columns: tuple[Traced, ...]
    ends: Traced
    is_reversed: bool
    origin: Any

    def parts(self) -> Sequence[Any]:
        return *self.columns, self.ends

    def of(self, parts: Sequence[Any]) -> Any:
        *columns, ends = parts
        return ListSnapshot(self.elements, tuple(columns), ends, self.is_reversed, self.origin)

    def made(self, columns: Sequence[Any], ends: Any) -> list[Any]:
        """The list, built from arrays that were computed."""
        begin, end = int(ends[BEGIN]), int(ends[END])
        parts = [column[begin:end] for column in columns]
        kinds, form = self.elements.kinds, self.elements.form
        lists = [
            part.tolist() if isinstance(kind, type) else list(part) for part, kind in zip(parts, kinds, strict=True)
        ]
        elements = _elements(form, iter(lists))
        return elements[::-1] if self.is_reversed else elements


def _elements(form: Form, columns: Iterator[list[Any]]) -> list[Any]:
    """The elements, built from lists of their numbers."""
    if isinstance(form, Parts):
        parts = [_elements(part, columns) for part in form.parts]
        return [*zip(*parts, strict=True)] if form.kind is tuple else list(map(form.kind, *parts))
    values = next(columns)
    if not isinstance(form, Choice):
        return values
    constants = form.constants
    if form.other is None:
        return [constants[tag - 1] for tag in values]
    others = _elements(form.other, columns)
    return [part if tag == OTHER else constants[tag - 1] for tag, part in zip(values, others, strict=True)]


class Later(Composite):
    """The deferred result of a function of a list, applied after the code has run. It can only be returned."""

    def __init__(self, function: Callable[[Any], Any], of: Any, origin: Any = None) -> None:
        self.function, self.given = function, of
        self.origin = object() if origin is None else origin

    def parts(self) -> Sequence[Any]:
        return self.given.parts()  # type: ignore[no-any-return]  # of these two alone

    def of(self, parts: Sequence[Any]) -> Any:
        return Later(self.function, self.given.of(parts), self.origin)

    def __getitem__(self, key: Any) -> "Later":
        if not isinstance(key, slice) or (key.start, key.stop, key.step) != (None, None, -1):
            raise UnknownError("a slice of an array of a list that has grown")
        return Later(operator.itemgetter(key), self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownError(f"{name} of an array of a list that has grown")

    def __len__(self) -> int:
        raise UnknownError("the length of an array of a list that has grown")

    def __repr__(self) -> str:
        raise UnknownError("the text of a list that has grown")


class DynamicList:
    """The elements of a list whose length the compiled code knows."""

    def __init__(self, tracer: Tracer, elements: Elements, *, is_queue: bool) -> None:
        self.tracer, self.elements, self.is_queue = tracer, elements, is_queue
        self.depth, self.is_reversed = tracer.depth, False
        self.room = tracer.room()
        self.columns = [self._zeros(dtype_of(kind), self.room) for kind in elements.kinds]
        self.ends = self._zeros("int64", 2)

    def _zeros(self, dtype: str, length: Any) -> Traced:
        return fresh(self.tracer, builder.broadcast_to(builder.constant(0, dtype), (length,)))

    # Reads

    def _end(self, which: int) -> Any:
        index = builder.constant(which, "int64")
        node = Node("gather", (self.ends.node, index), "int64", (), {"axis": 0})
        end = as_number(self.tracer, node, int)
        intervals.note(self.tracer, node, (0, intervals.FAR))
        return end

    @property
    def length(self) -> Any:
        """The number of elements."""
        return self._in_region(self._length)

    def _length(self) -> Any:
        return self._end(END) - self._end(BEGIN) if self.is_queue else self._end(END)

    def finished(self) -> ListSnapshot:
        """A snapshot of the list."""
        columns = tuple(fresh(self.tracer, column.node) for column in self.columns)
        return ListSnapshot(self.elements, columns, fresh(self.tracer, self.ends.node), self.is_reversed, object())

    # Writes

    def append(self, value: Any) -> None:
        """Append an element, of the form of the others."""
        self._in_region(lambda: self._append(value))

    def get(self, index: Any) -> Any:
        """Read an element."""
        return self._in_region(lambda: self._get(self._checked_index(index)))

    def put(self, index: Any, value: Any) -> None:
        """Assign to an element."""
        self._in_region(lambda: self._put(self._checked_index(index), value))

    def pop(self, index: Any) -> Any:
        """Remove and return the last element, or the first one of a queue."""
        return self._in_region(lambda: self._pop(index))

    def _in_region(self, operation: Callable[[], Any]) -> Any:
        """Run an operation inside a loop or branch region: kernels do not access single elements."""
        if self.is_reversed:
            raise UnknownError("a list that was reversed")
        if self.tracer.depth:
            return operation()
        result: list[Any] = [UNSET]

        def put(values: tuple[Any, ...]) -> None:
            result[0] = values[0]

        first = builder.view(self.ends.node, ((END, ()),), ())
        always = elementwise("greater_equal", first, builder.constant(0, "int64"))
        state = State(("_jk_found",), lambda: (result[0],), put, 0)
        choose(self.tracer, as_number(self.tracer, always, bool), lambda: put((operation(),)), lambda: None, state)
        return result[0]

    def _append(self, value: Any) -> None:
        leaves = leaves_of(value, self.elements.form)
        assert leaves is not None, "looked at before"
        end = self._end(END)
        options = {"extent": self.room, "counts_back": False, "grows": True}
        self._put_leaves(Node("bounded", (as_int(self.tracer, end),), "int64", (), options), leaves)
        self._set(END, end + 1)

    def _put(self, index: Node, value: Any) -> None:
        leaves = leaves_of(value, self.elements.form)
        assert leaves is not None, "looked at before"
        self._put_leaves(index, leaves)

    def _put_leaves(self, index: Node, leaves: Sequence[Any]) -> None:
        for column, kind, leaf in zip(self.columns, self.elements.kinds, leaves, strict=True):
            value, storage = node_of(self.tracer, leaf, kind), column.view.storage
            storage.change(Node("scatter", (storage.node, value, index), value.dtype, storage.node.shape, {"axis": 0}))

    def _set(self, which: int, value: Any) -> None:
        storage = self.ends.view.storage
        operands = (storage.node, as_int(self.tracer, value), builder.constant(which, "int64"))
        storage.change(Node("scatter", operands, "int64", storage.node.shape, {"axis": 0}))

    def _get(self, index: Node) -> Any:
        def leaves() -> Iterator[Any]:
            for column, kind in zip(self.columns, self.elements.kinds, strict=True):
                node = Node("gather", (column.node, index), column.node.dtype, (), {"axis": 0})
                yield as_number(self.tracer, node, kind)

        return unflatten(self.tracer, self.elements.form, leaves())

    def _checked_index(self, index: Any) -> Node:
        """The index of an element. Calls in which it is out of bounds bail out."""
        length = self._length()
        is_constant = type(index) is int
        if is_constant and index < 0:
            index, low = length + index, as_int(self.tracer, length + index)
            self.tracer.checks.append(elementwise("less", low, builder.constant(0, "int64")))
        elif is_constant or type(index) is Whole or kind_of(index) is int:
            node = as_int(self.tracer, index)
            if not is_constant:
                is_negative = elementwise("less", node, builder.constant(0, "int64"))
                from_end = as_int(self.tracer, length + index)
                node = Node("where", (is_negative, from_end, node), "int64", ())
                self.tracer.checks.append(elementwise("less", node, builder.constant(0, "int64")))
                index = as_number(self.tracer, node, int)
            self.tracer.checks.append(elementwise("greater_equal", node, as_int(self.tracer, length)))
        else:
            raise UnknownError("a slice of a list that has grown")
        position = as_int(self.tracer, index + self._end(BEGIN) if self.is_queue else index)
        return Node("bounded", (position,), "int64", (), {"extent": self.room, "counts_back": False})

    def _pop(self, index: Any) -> Any:
        element = self._get(self._checked_index(index))
        if index == 0:
            self._set(BEGIN, self._end(BEGIN) + 1)
        else:
            self._set(END, self._end(END) - 1)
        return element

    def truth(self) -> Node:
        """Whether the list is not empty."""
        if self.tracer.depth:
            return elementwise("greater", *(as_int(self.tracer, self._end(which)) for which in (END, BEGIN)))
        ends = [builder.view(self.ends.node, ((which, ()),), ()) for which in (END, BEGIN)]
        return elementwise("greater", *ends)

    def inside(self) -> Node:
        """A mask over the capacity: whether each slot holds an element."""
        numbers = Node("iota", (), "int64", (self.room,), {"axis": 0})
        begin, end = (builder.view(self.ends.node, ((which, ()),), ()) for which in (BEGIN, END))
        is_behind = elementwise("greater_equal", numbers, begin)
        return elementwise("logical_and", is_behind, elementwise("less", numbers, end))

    def fill(self, values: Sequence[Any]) -> None:
        """Store the first elements."""
        for index, value in enumerate(values):
            leaves = leaves_of(value, self.elements.form)
            assert leaves is not None, "looked at before"
            for column, kind, leaf in zip(self.columns, self.elements.kinds, leaves, strict=True):
                column[index] = fresh(self.tracer, node_of(self.tracer, leaf, kind), is_scalar=True)
        if values:
            self.ends[END] = len(values)
