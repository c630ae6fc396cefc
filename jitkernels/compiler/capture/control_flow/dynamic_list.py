"""Lists that grow and shrink as only the running code knows: arrays with room for elements, and how many there are.

Each number of an element has an array of its own: those of a tuple one each. Where there is no room for one more, the
call begins again with more of it, as with the tapes of derivatives.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.alternatives import OTHER, Choice
from jitkernels.frontends.flow.branches import choose
from jitkernels.frontends.flow.ints import as_int
from jitkernels.frontends.flow.state import UNSET, State, Unset, dtype_of, is_number, kind_of, node_of, number
from jitkernels.frontends.flow.structures import (
    Compound,
    Form,
    Leaf,
    Parts,
    form_of,
    joined_form,
    leaves_of,
    put_together,
)
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError, elementwise
from jitkernels.graph.ir import Node
from jitkernels.records import record

END, BEGIN = 0, 1
"""Where the two numbers are: behind the last element, and of the first one."""


class Elements(NamedTuple):
    """What elements are: the form of one, and the kinds of the numbers in it."""

    form: Form
    kinds: tuple[Any, ...]


def elements_like(value: Any, before: Elements | None) -> Elements:
    """What elements are of which some were so, and one has this value. Raises UnknownError for what is no element."""
    form = form_of(value) if before is None else joined_form(before.form, form_of(value))
    if form is None or not _is_plain(form):
        raise UnknownError("a list of different elements")
    leaves = leaves_of(value, form)
    assert leaves is not None, "it was joined"
    kinds = [kind_of(one) for one in leaves]
    if before is not None and len(before.kinds) == len(kinds):
        kinds = [b if a is Unset else a for a, b in zip(before.kinds, kinds, strict=True)]
        if any(kind_of(one) not in (kind, Unset) for one, kind in zip(leaves, kinds, strict=True)):
            raise UnknownError("a list of elements of different types")
    if not kinds or not all(is_number(kind) or one is UNSET for kind, one in zip(kinds, leaves, strict=True)):
        raise UnknownError("elements of a list that are no numbers")
    return Elements(form, tuple(kinds))


def _is_plain(form: Form) -> bool:
    """Whether nothing in an element can be changed."""
    if isinstance(form, Parts):
        return issubclass(form.kind, tuple) and all(map(_is_plain, form.parts))
    if isinstance(form, Choice):
        return form.other is None or _is_plain(form.other)
    return isinstance(form, Leaf)


@record
class Finished(Compound):
    """The elements at some time: their arrays, how many there are, and where they begin."""

    elements: Elements
    columns: tuple[Traced, ...]
    ends: Traced
    is_reversed: bool
    origin: Any

    def parts(self) -> Sequence[Any]:
        return *self.columns, self.ends

    def of(self, parts: Sequence[Any]) -> Any:
        *columns, ends = parts
        return Finished(self.elements, tuple(columns), ends, self.is_reversed, self.origin)

    def made(self, columns: Sequence[Any], ends: Any) -> list[Any]:
        """The list, of arrays that were computed."""
        begin, end = int(ends[BEGIN]), int(ends[END])
        parts = [one[begin:end] for one in columns]
        kinds, form = self.elements.kinds, self.elements.form
        lists = [
            part.tolist() if isinstance(kind, type) else list(part)
            for part, kind in zip(parts, kinds, strict=True)
        ]
        found = _elements(form, iter(lists))
        return found[::-1] if self.is_reversed else found


def _elements(form: Form, columns: Iterator[list[Any]]) -> list[Any]:
    """The elements, of lists of the numbers in them."""
    if isinstance(form, Parts):
        parts = [_elements(one, columns) for one in form.parts]
        return [*zip(*parts, strict=True)] if form.kind is tuple else list(map(form.kind, *parts))
    found = next(columns)
    if not isinstance(form, Choice):
        return found
    constants = form.constants
    if form.other is None:
        return [constants[tag - 1] for tag in found]
    others = _elements(form.other, columns)
    return [one if tag == OTHER else constants[tag - 1] for tag, one in zip(found, others, strict=True)]


class Later(Compound):
    """What a function makes of a list, or of what was made of it, when the code has run. It is a result, or nothing."""

    def __init__(self, function: Callable[[Any], Any], of: Any, origin: Any = None) -> None:
        self.function, self.given = function, of
        self.origin = object() if origin is None else origin

    def parts(self) -> Sequence[Any]:
        return self.given.parts()  # type: ignore[no-any-return]  # of these two alone

    def of(self, parts: Sequence[Any]) -> Any:
        return Later(self.function, self.given.of(parts), self.origin)

    def __getitem__(self, key: Any) -> "Later":
        if not isinstance(key, slice) or (key.start, key.stop, key.step) != (None, None, -1):
            raise UnknownError("a part of what a list that has grown becomes")
        return Later(operator.itemgetter(key), self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownError(f"{name} of an array of a list that has grown")

    def __len__(self) -> int:
        raise UnknownError("the length of an array of a list that has grown")

    def __repr__(self) -> str:
        raise UnknownError("the text of a list that has grown")


class Counted:
    """The elements of a list, of which the running code knows how many there are."""

    def __init__(self, tracer: Tracer, elements: Elements, *, is_queue: bool) -> None:
        self.tracer, self.elements, self.is_queue = tracer, elements, is_queue
        self.depth, self.is_reversed = tracer.depth, False
        self.room = tracer.room()
        self.columns = [self._zeros(dtype_of(kind), self.room) for kind in elements.kinds]
        self.ends = self._zeros("int64", 2)

    def _zeros(self, dtype: str, length: Any) -> Traced:
        return fresh(self.tracer, construct.broadcast_to(construct.constant(0, dtype), (length,)))

    # What is there

    def _end(self, which: int) -> Any:
        place = construct.constant(which, "int64")
        node = Node("gather", (self.ends.node, place), "int64", (), {"axis": 0})
        found = number(self.tracer, node, int)
        ranges.note(self.tracer, node, (0, ranges.FAR))
        return found

    @property
    def length(self) -> Any:
        """How many elements there are."""
        return self._inside(self._length)

    def _length(self) -> Any:
        return self._end(END) - self._end(BEGIN) if self.is_queue else self._end(END)

    def finished(self) -> Finished:
        """All of it as it is now."""
        columns = tuple(fresh(self.tracer, one.node) for one in self.columns)
        return Finished(
            self.elements, columns, fresh(self.tracer, self.ends.node), self.is_reversed, object()
        )

    # What is done

    def append(self, value: Any) -> None:
        """One more element, of the form of others."""
        self._inside(lambda: self._append(value))

    def get(self, index: Any) -> Any:
        """An element."""
        return self._inside(lambda: self._get(self._place(index)))

    def put(self, index: Any, value: Any) -> None:
        """Another value for an element."""
        self._inside(lambda: self._put(self._place(index), value))

    def pop(self, index: Any) -> Any:
        """The last element, or the first one of a queue, which is one no more."""
        return self._inside(lambda: self._pop(index))

    def _inside(self, do: Callable[[], Any]) -> Any:
        """Done in a loop or branch: what is done to single elements is nothing that kernels do."""
        if self.is_reversed:
            raise UnknownError("a list that was turned round")
        if self.tracer.depth:
            return do()
        found: list[Any] = [UNSET]

        def put(values: tuple[Any, ...]) -> None:
            found[0] = values[0]

        first = construct.view(self.ends.node, ((END, ()),), ())
        always = elementwise("greater_equal", first, construct.constant(0, "int64"))
        state = State(("_jk_found",), lambda: (found[0],), put, 0)
        choose(self.tracer, number(self.tracer, always, bool), lambda: put((do(),)), lambda: None, state)
        return found[0]

    def _append(self, value: Any) -> None:
        leaves = leaves_of(value, self.elements.form)
        assert leaves is not None, "looked at before"
        end = self._end(END)
        options = {"extent": self.room, "counts_back": False, "grows": True}
        self._put_leaves(Node("bounded", (as_int(self.tracer, end),), "int64", (), options), leaves)
        self._set(END, end + 1)

    def _put(self, place: Node, value: Any) -> None:
        leaves = leaves_of(value, self.elements.form)
        assert leaves is not None, "looked at before"
        self._put_leaves(place, leaves)

    def _put_leaves(self, place: Node, leaves: Sequence[Any]) -> None:
        for column, kind, one in zip(self.columns, self.elements.kinds, leaves, strict=True):
            value, storage = node_of(self.tracer, one, kind), column.view.storage
            storage.change(
                Node("scatter", (storage.node, value, place), value.dtype, storage.node.shape, {"axis": 0})
            )

    def _set(self, which: int, value: Any) -> None:
        storage = self.ends.view.storage
        given = (storage.node, as_int(self.tracer, value), construct.constant(which, "int64"))
        storage.change(Node("scatter", given, "int64", storage.node.shape, {"axis": 0}))

    def _get(self, place: Node) -> Any:
        def leaves() -> Iterator[Any]:
            for column, kind in zip(self.columns, self.elements.kinds, strict=True):
                node = Node("gather", (column.node, place), column.node.dtype, (), {"axis": 0})
                yield number(self.tracer, node, kind)

        return put_together(self.tracer, self.elements.form, leaves())

    def _place(self, index: Any) -> Node:
        """Where an element is. Calls in which there is none are refused."""
        length = self._length()
        is_plain = type(index) is int
        if is_plain and index < 0:
            index, low = length + index, as_int(self.tracer, length + index)
            self.tracer.checks.append(elementwise("less", low, construct.constant(0, "int64")))
        elif is_plain or type(index) is Whole or kind_of(index) is int:
            node = as_int(self.tracer, index)
            if not is_plain:
                behind = elementwise("less", node, construct.constant(0, "int64"))
                moved = as_int(self.tracer, length + index)
                node = Node("where", (behind, moved, node), "int64", ())
                self.tracer.checks.append(elementwise("less", node, construct.constant(0, "int64")))
                index = number(self.tracer, node, int)
            self.tracer.checks.append(elementwise("greater_equal", node, as_int(self.tracer, length)))
        else:
            raise UnknownError("a part of a list that has grown")
        place = as_int(self.tracer, index + self._end(BEGIN) if self.is_queue else index)
        return Node("bounded", (place,), "int64", (), {"extent": self.room, "counts_back": False})

    def _pop(self, index: Any) -> Any:
        found = self._get(self._place(index))
        if index == 0:
            self._set(BEGIN, self._end(BEGIN) + 1)
        else:
            self._set(END, self._end(END) - 1)
        return found

    def truth(self) -> Node:
        """Whether there is an element."""
        if self.tracer.depth:
            return elementwise("greater", *(as_int(self.tracer, self._end(which)) for which in (END, BEGIN)))
        ends = [construct.view(self.ends.node, ((which, ()),), ()) for which in (END, BEGIN)]
        return elementwise("greater", *ends)

    def inside(self) -> Node:
        """For all places for which there is room whether there is an element."""
        numbers = Node("iota", (), "int64", (self.room,), {"axis": 0})
        begin, end = (construct.view(self.ends.node, ((which, ()),), ()) for which in (BEGIN, END))
        is_behind = elementwise("greater_equal", numbers, begin)
        return elementwise("logical_and", is_behind, elementwise("less", numbers, end))

    def fill(self, values: Sequence[Any]) -> None:
        """The first elements."""
        for place, value in enumerate(values):
            leaves = leaves_of(value, self.elements.form)
            assert leaves is not None, "looked at before"
            for column, kind, one in zip(self.columns, self.elements.kinds, leaves, strict=True):
                column[place] = fresh(self.tracer, node_of(self.tracer, one, kind), is_scalar=True)
        if values:
            self.ends[END] = len(values)
