"""Lists that grow and shrink as the compiled code runs: arrays with spare capacity, and the number of elements.

Each number in an element has an array of its own; a tuple has one array per item. Where the capacity is exceeded, the
call restarts with a larger one, like the tapes of derivatives.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow import carried_trees, loop_state
from jitkernels.compiler.capture.control_flow.carried_trees import Composite, ContainerForm, Form, LeafForm
from jitkernels.compiler.capture.control_flow.loop_state import UNSET, Unset, Variable, as_number, is_number, kind_of
from jitkernels.compiler.capture.control_flow.tagged_union import OTHER, Alternatives
from jitkernels.compiler.capture.control_flow.trace_branch import trace_if
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.core.frozen_dataclass import frozen_dataclass

END_SLOT, FIRST_SLOT = 0, 1
"""Indices into `ends`: the end of the elements, and the index of the first one."""


class ElementType(NamedTuple):
    """The type of elements: their form, and the kinds of the numbers in them. `is_queue`: the first may be popped."""

    form: Form
    kinds: tuple[Any, ...]
    is_queue: bool = False


def element_type(value: Any, before: ElementType | None) -> ElementType:
    """The common type of `before` and an element with this value. Raises UnsupportedError for unsupported elements."""
    own = carried_trees.form_of(value)
    form = own if before is None else carried_trees.join_forms(before.form, own)
    if form is None or not _is_immutable(form):
        raise UnsupportedError("a list of elements of different types or shapes")
    leaves = carried_trees.leaves_of(value, form)
    assert leaves is not None, "the form covers the value"
    kinds = [kind_of(leaf) for leaf in leaves]
    if before is not None and len(before.kinds) == len(kinds):
        kinds = [_joined(a, b) for a, b in zip(before.kinds, kinds, strict=True)]
    if not kinds or not all(is_number(kind) or leaf is UNSET for kind, leaf in zip(kinds, leaves, strict=True)):
        raise UnsupportedError("elements of a list that are not numbers")
    return ElementType(form, tuple(kinds), before is not None and before.is_queue)


def _joined(before: Any, kind: Any) -> Any:
    """The kind of a number of elements, as that of a variable: NumPy's, where some are Python's."""
    if Unset in (before, kind):
        return kind if before is Unset else before
    if loop_state.dtype_of(before) != loop_state.dtype_of(kind):  # NumPy would promote both in an array of the list
        raise UnsupportedError("a list of elements of different types")
    return before if before == kind else loop_state.dtype_of(kind)


def _is_immutable(form: Form) -> bool:
    """Whether nothing in an element is mutable."""
    if isinstance(form, ContainerForm):
        return issubclass(form.kind, tuple) and all(map(_is_immutable, form.parts))
    if isinstance(form, Alternatives):
        return form.other is None or _is_immutable(form.other)
    return isinstance(form, LeafForm)


@frozen_dataclass
class ListSnapshot(Composite):
    """A snapshot of the elements: their arrays, and the indices of their begin and end."""

    elements: ElementType
    columns: tuple[Traced, ...]
    ends: Traced
    is_reversed: bool
    origin: Any

    def parts(self) -> Sequence[Any]:
        return *self.columns, self.ends

    def of(self, parts: Sequence[Any]) -> Any:
        *columns, ends = parts
        return ListSnapshot(self.elements, tuple(columns), ends, self.is_reversed, self.origin)

    def build(self, columns: Sequence[Any], ends: Any) -> list[Any]:
        """The list, built from arrays that were computed."""
        begin, end = int(ends[FIRST_SLOT]), int(ends[END_SLOT])
        parts = [column[begin:end] for column in columns]
        lists = [
            part.tolist() if isinstance(kind, type) else list(part)
            for part, kind in zip(parts, self.elements.kinds, strict=True)
        ]
        elements = _build_elements(self.elements.form, iter(lists))
        return elements[::-1] if self.is_reversed else elements


def _build_elements(form: Form, columns: Iterator[list[Any]]) -> list[Any]:
    """The elements, built from lists of their numbers."""
    if isinstance(form, ContainerForm):
        parts = [_build_elements(part, columns) for part in form.parts]
        return [*zip(*parts, strict=True)] if form.kind is tuple else list(map(form.kind, *parts))
    values = next(columns)
    if not isinstance(form, Alternatives):
        return values
    if form.other is None:
        return [form.constants[tag - 1] for tag in values]
    others = _build_elements(form.other, columns)
    return [part if tag == OTHER else form.constants[tag - 1] for tag, part in zip(values, others, strict=True)]


class DeferredResult(Composite):
    """The result of a function of a list, applied to `operand` after the code has run. It can only be returned."""

    def __init__(self, function: Callable[[Any], Any], operand: Any, origin: Any = None) -> None:
        self.function, self.operand = function, operand
        self.origin = object() if origin is None else origin

    def parts(self) -> Sequence[Any]:
        return self.operand.parts()  # type: ignore[no-any-return]  # of these two alone

    def of(self, parts: Sequence[Any]) -> Any:
        return DeferredResult(self.function, self.operand.of(parts), self.origin)

    def __getitem__(self, key: Any) -> "DeferredResult":
        if not isinstance(key, slice) or (key.start, key.stop, key.step) != (None, None, -1):
            raise UnsupportedError("a slice of an array of a list that has grown")
        return DeferredResult(operator.itemgetter(key), self)

    @property
    def T(self) -> "DeferredResult":  # noqa: N802  # as NumPy's
        if self.function is list:
            raise AttributeError("'list' object has no attribute 'T'")
        return DeferredResult(operator.attrgetter("T"), self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"{name} of an array of a list that has grown")

    def __len__(self) -> int:
        raise UnsupportedError("the length of an array of a list that has grown")

    def __repr__(self) -> str:
        raise UnsupportedError("the text of a list that has grown")


class DynamicList:
    """The elements of a list whose length the compiled code counts."""

    def __init__(self, tracer: Tracer, elements: ElementType, values: Sequence[Any] = ()) -> None:
        self.tracer, self.elements = tracer, elements
        self.depth, self.is_reversed = tracer.depth, False
        self.capacity = tracer.room()
        self.columns = [self._zeros(loop_state.dtype_of(kind), self.capacity) for kind in elements.kinds]
        self.ends = self._zeros("int64", 2)
        for index, value in enumerate(values):
            for column, number in zip(self.columns, self._numbers(value), strict=True):
                column[index] = fresh(tracer, number, is_scalar=True)
        if values:
            self.ends[END_SLOT] = len(values)
        self._initial_nodes = self._nodes()

    def _nodes(self) -> list[Node]:
        return [array.node for array in (*self.columns, self.ends)]

    @property
    def has_changed(self) -> bool:
        """Whether a loop or branch has changed the list since it was made."""
        return any(now is not before for now, before in zip(self._nodes(), self._initial_nodes, strict=True))

    def converted(self, elements: ElementType) -> "DynamicList":
        """The list with numbers of other kinds, or as a queue. Raises UnsupportedError for elements of another form."""
        if elements.form != self.elements.form or len(elements.kinds) != len(self.elements.kinds):
            raise UnsupportedError("a list of elements of different types or shapes")
        result = DynamicList(self.tracer, elements)
        result.columns = [
            fresh(self.tracer, builder.cast(column.node, loop_state.dtype_of(kind)))
            for column, kind in zip(self.columns, elements.kinds, strict=True)
        ]
        result.ends = fresh(self.tracer, self.ends.node)
        result.depth, result.is_reversed = self.depth, self.is_reversed
        return result

    def _zeros(self, dtype: str, length: Any) -> Traced:
        return fresh(self.tracer, builder.broadcast_to(builder.constant(0, dtype), (length,)))

    def _numbers(self, value: Any) -> list[Node]:
        """The numbers in an element."""
        leaves = carried_trees.leaves_of(value, self.elements.form)
        assert leaves is not None, "`element_type` has tested the element"
        return [
            loop_state.node_of(self.tracer, leaf, kind) for leaf, kind in zip(leaves, self.elements.kinds, strict=True)
        ]

    def _in_region(self, operation: Callable[[], Any]) -> Any:
        """Run an operation inside a loop or branch region: kernels do not access single elements."""
        if self.is_reversed:
            raise UnsupportedError("a list that was reversed")
        if self.tracer.depth:
            return operation()
        always = elementwise("greater_equal", self._end_as_view(END_SLOT), builder.constant(0, "int64"))
        result = Variable("_jk_element")
        condition = as_number(self.tracer, always, bool)
        trace_if(self.tracer, condition, lambda: result.set(operation()), lambda: None, result)
        return result.value

    # Begin and end

    def _end_as_view(self, which: int) -> Node:
        return builder.view(self.ends.node, ((which, ()),), ())

    def _end(self, which: int) -> Any:
        node = self._gather(self.ends, builder.constant(which, "int64"))
        end = as_number(self.tracer, node, int)
        intervals.note(self.tracer, node, (0, intervals.FAR_LIMIT))
        return end

    def _set_end(self, which: int, value: Any) -> None:
        self._scatter(self.ends, as_int(self.tracer, value), builder.constant(which, "int64"))

    @property
    def length(self) -> Any:
        return self._in_region(self._length)

    def _length(self) -> Any:
        return self._end(END_SLOT) - self._end(FIRST_SLOT) if self.elements.is_queue else self._end(END_SLOT)

    def truth(self) -> Node:
        """Whether the list is not empty."""
        if self.tracer.depth:
            return elementwise("greater", *(as_int(self.tracer, self._end(which)) for which in (END_SLOT, FIRST_SLOT)))
        return elementwise("greater", *map(self._end_as_view, (END_SLOT, FIRST_SLOT)))

    def element_mask(self) -> Node:
        """A mask over the capacity: whether each slot holds an element."""
        numbers = Node("iota", (), "int64", (self.capacity,), {"axis": 0})
        begin, end = map(self._end_as_view, (FIRST_SLOT, END_SLOT))
        is_behind = elementwise("greater_equal", numbers, begin)
        return elementwise("logical_and", is_behind, elementwise("less", numbers, end))

    def end(self) -> Any:
        """The number of elements of a list that is no queue, outside of the loops in which it grows."""
        node = self._end_as_view(END_SLOT)
        intervals.note(self.tracer, node, (0, self.capacity))
        return as_number(self.tracer, node, int)

    # Elements

    def snapshot(self) -> ListSnapshot:
        columns = tuple(fresh(self.tracer, column.node) for column in self.columns)
        return ListSnapshot(self.elements, columns, fresh(self.tracer, self.ends.node), self.is_reversed, object())

    def append(self, value: Any) -> None:
        """Append an element, of the form of the others."""

        def append() -> None:
            end = self._end(END_SLOT)
            options = {"extent": self.capacity, "counts_back": False, "grows": True}
            self._put(Node("bounded", (as_int(self.tracer, end),), "int64", (), options), value)
            self._set_end(END_SLOT, end + 1)

        self._in_region(append)

    def get(self, index: Any) -> Any:
        """Read an element."""
        return self._in_region(lambda: self._get(self._checked_index(index)))

    def put(self, index: Any, value: Any) -> None:
        """Assign to an element."""
        self._in_region(lambda: self._put(self._checked_index(index), value))

    def pop(self, index: Any) -> Any:
        """Remove and return the last element, or the first one of a queue."""

        def pop() -> Any:
            element = self._get(self._checked_index(index))
            if index == 0:
                self._set_end(FIRST_SLOT, self._end(FIRST_SLOT) + 1)
            else:
                self._set_end(END_SLOT, self._end(END_SLOT) - 1)
            return element

        return self._in_region(pop)

    def _put(self, index: Node, value: Any) -> None:
        for column, number in zip(self.columns, self._numbers(value), strict=True):
            self._scatter(column, number, index)

    def _scatter(self, array: Traced, value: Node, index: Node) -> None:
        storage = array.view.storage
        storage.change(Node("scatter", (storage.node, value, index), value.dtype, storage.node.shape, {"axis": 0}))

    def _gather(self, array: Traced, index: Node) -> Node:
        return Node("gather", (array.node, index), array.node.dtype, (), {"axis": 0})

    def _get(self, index: Node) -> Any:
        columns = zip(self.columns, self.elements.kinds, strict=True)
        leaves = (as_number(self.tracer, self._gather(column, index), kind) for column, kind in columns)
        return carried_trees.unflatten(self.tracer, self.elements.form, leaves)

    def _checked_index(self, index: Any) -> Node:
        """The index of an element. Calls in which it is out of bounds bail out."""
        length, zero = self._length(), builder.constant(0, "int64")
        if type(index) is int and index < 0:
            index, position = length + index, as_int(self.tracer, length + index)
            self.tracer.checks.append(elementwise("less", position, zero))
        elif type(index) in (int, SymInt) or kind_of(index) is int:
            node = as_int(self.tracer, index)
            if type(index) is not int:
                is_negative = elementwise("less", node, zero)
                from_end = as_int(self.tracer, length + index)
                node = Node("where", (is_negative, from_end, node), "int64", ())
                self.tracer.checks.append(elementwise("less", node, zero))
                index = as_number(self.tracer, node, int)
            self.tracer.checks.append(elementwise("greater_equal", node, as_int(self.tracer, length)))
        else:
            raise UnsupportedError("a slice of a list that has grown")
        position = as_int(self.tracer, index + self._end(FIRST_SLOT) if self.elements.is_queue else index)
        return Node("bounded", (position,), "int64", (), {"extent": self.capacity, "counts_back": False})
