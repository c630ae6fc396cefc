"""Lists that grow by one element in each round of a loop whose rounds are known: rows of an array of the code.

``found = []`` and ``[f(x) for x in a]`` make a `Listed`. As long as nothing is added to it in a loop of the code, it is
a list as any other. What is done to it in other ways than those here is left to Python.
"""

from collections.abc import Callable, Iterator
from typing import Any

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.alternatives import Undecided
from jitkernels.frontends.flow.counted import Counted, Elements, Later, elements_like
from jitkernels.frontends.flow.state import UNSET, dtype_of, is_number, joined, kind_of, number
from jitkernels.frontends.flow.structures import Leaf
from jitkernels.frontends.flow.tracing import name_of
from jitkernels.frontends.storage import watched
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import FIRST_ROOM, Tracer, current
from jitkernels.frontends.whole import Whole, as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number, product
from jitkernels.graph.ir import Node
from jitkernels.graph.unknown import AskedError


class GrowsError(UnknownError):
    """A list grows in a loop, which has to be traced again with memory for it."""

    def __init__(self, grown: "Listed", kind: Any, like: Traced | None, rounds: Number) -> None:
        super().__init__("a list grows in a loop")
        self.grown, self.kind, self.like, self.rounds = grown, kind, like, rounds
        self.elements: Elements | None = None
        self.is_queue = False


class EmptyError(UnknownError):
    """A list that grows in a loop is empty as far as is known, which says nothing of what its elements are."""


def counted(grown: "Listed", elements: Elements, *, is_queue: bool) -> GrowsError:
    """What is raised for a list of which the running code is to count the elements."""
    error = GrowsError(grown, None, None, 0)
    error.elements, error.is_queue = elements, is_queue
    return error


class Listed(list[Any], Undecided):
    """A list of a trace. `array` is None while it is a list as any other, else it has the elements as its rows.

    `kind` is that of elements that are numbers; `count` how many elements there are, outside of the loop.
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
        self.counted: Counted | None = None

    # What a loop does

    def back(self, tracer: Tracer, error: GrowsError) -> None:
        """Have memory for as many rows more. Raises UnknownError for what are no rows."""
        values = list(self)
        if error.elements is not None:
            self.counted = Counted(tracer, error.elements, is_queue=error.is_queue)
            self.counted.fill(values)
            return
        kind, like = error.kind, error.like
        shape: tuple[Number, ...] = like.extents if like is not None else ()
        if any(map(extents.is_moving, (*shape, error.rounds))):
            raise UnknownError("a list whose length, or that of its elements, hangs on a loop around")
        for one in values:
            if like is None:
                kind = joined("an element", kind, kind_of(one))
            elif (
                type(one) is not Traced
                or one.dtype != like.dtype
                or not extents.same_shape(one.extents, shape)
            ):
                raise UnknownError("a list of different elements")
        if not values and not ranges.guarded_at_least_zero(error.rounds - 1):
            raise UnknownError("a list that may be empty")
        dtype = dtype_of(kind) if like is None else like.node.dtype
        self.count = as_whole(tracer, error.rounds + len(values))
        nothing = construct.constant(0, dtype)
        self.array = fresh(tracer, construct.broadcast_to(nothing, (error.rounds + len(values), *shape)))
        self.kind = kind if like is None else None
        for place, one in enumerate(values):
            self.array[place] = one
            if like is not None:
                one.view.storage.doubts.append(self.array.view.storage)
        self.is_growing = True

    def begin(self) -> None:
        """A round of the outermost loop in which it grows begins."""
        self.site = self.last = None
        self.added = 0

    def end(self) -> None:
        """The loop is traced. Raises UnknownError where a round has not added to the list."""
        if self.counted is not None:
            return
        if self.site is None:
            raise UnknownError("a list grows in some rounds")
        self.is_growing = False

    def restore(self) -> None:
        """Be a plain list again."""
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
            except GrowsError:
                raise
            except UnknownError as error:
                self._count(error, value)

    def _count(self, error: UnknownError, *values: Any, is_queue: bool = False) -> None:
        """Have the running code count the elements, one of which has such values; if that cannot be, raise an error."""
        elements = None
        try:
            for one in (*list.__iter__(self), *values):
                elements = elements_like(one, elements)
        except UnknownError:
            raise error from None
        if elements is None and self.array is not None and self.kind is not None:
            elements = Elements(Leaf(UNSET), (self.kind,))
        if elements is None:
            raise EmptyError(str(error))
        if len(self.items()) > FIRST_ROOM:
            raise error
        raise counted(self, elements, is_queue=is_queue)

    def items(self) -> list[Any]:
        """The elements from before it grew."""
        return [*list.__iter__(self)]

    def _expect(self, elements: Elements) -> None:
        """Begin again where elements are of more kinds than was known."""
        assert self.counted is not None, "asked before"
        known = self.counted.elements
        if len(known.kinds) != len(elements.kinds) or any(
            a is not b and a != b for a, b in zip(known.kinds, elements.kinds, strict=True)
        ):
            raise counted(self, elements, is_queue=self.counted.is_queue)

    def _append(self, tracer: Tracer, value: Any) -> None:
        loops = [one for one in tracer.loops if one.depth > self.depth]
        if (
            len(loops) != tracer.depth - self.depth
            or not loops
            or (self.array is not None and not self.is_growing)
        ):
            raise UnknownError(
                f"the list {name_of(self)!r} grows in a branch, or after a loop in which it has grown: "
                "write to an array that is large enough"
            )
        kind, like = _like(value, loops[-1].start)
        counted = [one.rounds for one in loops]
        if None in counted:
            raise UnknownError(
                f"the list {name_of(self)!r} grows in a loop that may be left early, or whose rounds are not known"
            )
        if self.array is None:
            raise GrowsError(self, kind, like, product(counted))
        if like is None:
            if self.kind is None:
                raise UnknownError("a list of different elements")
            if joined("an element", self.kind, kind) != self.kind:
                raise GrowsError(self, joined("an element", self.kind, kind), None, product(counted))
        elif (
            self.kind is not None
            or like.dtype != self.array.dtype
            or not extents.same_shape(like.extents, self.array.extents[1:])
        ):
            raise UnknownError("a list of different elements")
        if self.site is None:
            self.site = loops
        last = loops[-1], loops[-1].passes
        if self.last == last or any(a is not b for a, b in zip(self.site, loops, strict=True)):
            raise UnknownError("a list grows at several places of a loop")
        self.last = last
        self.array[self._position(tracer)] = value if like is None else like
        if like is not None:
            # The array in the list is the very one: who writes to it changes the list.
            like.view.storage.doubts.append(self.array.view.storage)
            for one in loops:
                one.lists.append(self)
        self.added = 1

    def _position(self, tracer: Tracer) -> Any:
        """How many elements there are before this round."""
        found: Any = 0
        for loop in (one for one in tracer.loops if one.depth > self.depth):
            found = found * as_whole(tracer, loop.rounds) + loop.rank
        return found + list.__len__(self)

    # What others do

    @property
    def length(self) -> Any:
        """How many elements there are."""
        tracer = current()
        if self.counted is not None:
            return self.counted.length
        if self.array is None or tracer is None:
            return list.__len__(self)
        if not self.is_growing:
            return self.count
        if sum(one.depth > self.depth for one in tracer.loops) != 1:
            self._count(UnknownError("a list that grows in a loop in a loop is looked at"))
        return self._position(tracer) + self.added

    def item(self, index: Any) -> Any:
        """An element."""
        if self.counted is not None:
            return self._counted_item(self.counted, index)
        assert self.array is not None, "asked before"
        if self.is_growing:
            behind = -index if type(index) is int else 0
            if not 0 < behind <= list.__len__(self) + self.added:
                self._count(UnknownError("an element of a list that grows"))
            index = self.length - behind
        elif type(index) not in (int, Whole) and kind_of(index) is not int:
            if type(index) is slice and index == slice(None, None, -1):
                return Later(list, self)[index]
            raise UnknownError("a part of a list that has grown")
        found = self.array[index]
        if self.kind is not None:
            return number(self.array.tracer, found.node, self.kind)
        row = fresh(self.array.tracer, found.node)
        row.view.storage.doubts.append(self.array.view.storage)
        return row

    def _counted_item(self, found: Counted, index: Any) -> Any:
        if isinstance(index, slice):
            return Later(list, found.finished())[index]
        return found.get(index)

    def whole(self) -> Traced:
        """A new array of all elements."""
        if self.array is None or self.is_growing:
            raise UnknownError("a list that grows")
        return fresh(self.array.tracer, self.array.node)

    def _plain(self) -> None:
        if is_grown(self):
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
        return self.item(index) if is_grown(self) else super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        tracer = current()
        if self.counted is not None:
            self._expect(elements_like(value, self.counted.elements))
            self.counted.put(index, value)
        elif tracer is None or (
            tracer.depth == self.depth and self.array is None and type(index) in (int, slice)
        ):
            super().__setitem__(index, value)
        else:
            self._count(UnknownError("an element of a list that grows is assigned to"), value)

    def pop(self, index: Any = -1) -> Any:
        tracer = current()
        if self.counted is not None:
            if type(index) is not int or index not in (-1, 0):
                raise UnknownError("list.pop of other elements than the first and last")
            if index == 0 and not self.counted.is_queue:
                raise counted(self, self.counted.elements, is_queue=True)
            return self.counted.pop(index)
        if tracer is None or (tracer.depth == self.depth and self.array is None):
            return super().pop(index)
        self._count(UnknownError("list.pop of a list that grows"), is_queue=index == 0)
        return None

    def extend(self, values: Any) -> None:
        if not is_grown(self) and (current() is None or current().depth == self.depth):  # type: ignore[union-attr]
            super().extend(values)
            return
        if type(values) not in (list, tuple):
            raise UnknownError("list.extend of a list that grows, by what is no list or tuple")
        for one in values:
            self.append(one)

    def __iadd__(self, values: Any) -> Any:  # type: ignore[misc]  # as of lists
        self.extend(values)
        return self

    def reverse(self) -> None:
        tracer = current()
        if self.counted is not None and tracer is not None and tracer.depth == self.depth:
            self.counted.is_reversed = not self.counted.is_reversed
        elif is_grown(self) or (tracer is not None and tracer.depth != self.depth):
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
        assert self.counted is not None, "else it is traced again"
        return self.counted.truth()

    def __bool__(self) -> bool:
        if self.counted is not None:
            raise AskedError("whether there are elements in a list that has grown")
        if self.array is None:
            return super().__len__() > 0
        return bool(self.length > 0)


def _refusing(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def call(self: Listed, *given: Any, **named: Any) -> Any:
        tracer = current()
        if is_grown(self) or (tracer is not None and tracer.depth != self.depth):
            raise UnknownError(f"list.{name} of a list that grows in a loop, or in a branch")
        return plain(self, *given, **named)

    return call


for _name in (
    "__add__", "__contains__", "__delitem__", "__eq__", "__ge__", "__gt__", "__imul__", "__le__", "__lt__",
    "__mul__", "__ne__", "__reversed__", "__rmul__", "clear", "copy", "count", "index", "insert", "remove", "sort",
):  # fmt: skip
    if _name != "count":  # which is how many elements there are
        setattr(Listed, _name, _refusing(_name))


def _like(value: Any, start: int) -> tuple[Any, Traced | None]:
    """The kind of an element that is a number; an array that is none. Raises UnknownError for all else."""
    if isinstance(value, Listed):
        value = value.whole()
    kind = kind_of(value)
    if is_number(kind):
        return kind, None
    if type(value) is not Traced or not value.ndim:
        raise UnknownError("elements of a list that are no numbers or arrays")
    storage = value.view.storage
    if any(id(storage) in log for log in watched.logs) or storage.born < start and storage.leaf is None:
        raise UnknownError("an array in a list that is written to")
    return None, value


def finished(values: Listed) -> list[Any]:
    """What a comprehension gives."""
    return values if is_grown(values) else list(values)


def is_grown(value: Any) -> bool:
    """Whether a value is a list with elements that only the code knows."""
    return type(value) is Listed and (value.array is not None or value.counted is not None)
