"""Lists that grow by one element in each round of a loop whose rounds are known: rows of an array of the code.

``found = []`` and ``[f(x) for x in a]`` make a `Listed`. As long as nothing is added to it in a loop of the code, it is
a list as any other. What is done to it in other ways than those here is left to Python.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.state import dtype_of, is_number, joined, kind_of, number
from jitkernels.frontends.flow.tracing import name_of
from jitkernels.frontends.storage import watched
from jitkernels.frontends.tables import serves
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.frontends.whole import Whole, as_whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number, product


class GrowsError(UnknownError):
    """A list grows in a loop, which has to be traced again with memory for it."""

    def __init__(self, grown: "Listed", kind: Any, like: Traced | None, rounds: Number) -> None:
        super().__init__("a list grows in a loop")
        self.grown, self.kind, self.like, self.rounds = grown, kind, like, rounds


class Listed(list[Any]):
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

    # What a loop does

    def back(self, tracer: Tracer, error: GrowsError) -> None:
        """Have memory for as many rows more. Raises UnknownError for what are no rows."""
        values = list(self)
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
        if self.site is None:
            raise UnknownError("a list grows in some rounds")
        self.is_growing = False

    def restore(self) -> None:
        """Be a plain list again."""
        self.array, self.is_growing = None, False

    def append(self, value: Any) -> None:
        tracer = current()
        if tracer is None or (tracer.depth == self.depth and self.array is None):
            super().append(value)
            return
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
            raise UnknownError("a list grows in a loop that may be left early, or whose rounds are not known")
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
        if self.array is None or tracer is None:
            return list.__len__(self)
        if not self.is_growing:
            return self.count
        if sum(one.depth > self.depth for one in tracer.loops) != 1:
            raise UnknownError("a list that grows in a loop in a loop is looked at")
        return self._position(tracer) + self.added

    def item(self, index: Any) -> Any:
        """An element."""
        assert self.array is not None, "asked before"
        if self.is_growing:
            behind = -index if type(index) is int else 0
            if not 0 < behind <= list.__len__(self) + self.added:
                raise UnknownError("an element of a list that grows")
            index = self.length - behind
        elif type(index) not in (int, Whole) and kind_of(index) is not int:
            raise UnknownError("a part of a list that has grown")
        found = self.array[index]
        if self.kind is not None:
            return number(self.array.tracer, found.node, self.kind)
        row = fresh(self.array.tracer, found.node)
        row.view.storage.doubts.append(self.array.view.storage)
        return row

    def whole(self) -> Traced:
        """A new array of all elements."""
        if self.array is None or self.is_growing:
            raise UnknownError("a list that grows")
        return fresh(self.array.tracer, self.array.node)

    def _plain(self) -> None:
        if self.array is not None:
            raise UnknownError("a list that has grown in a loop")

    def __len__(self) -> int:
        self._plain()
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        self._plain()
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        return super().__getitem__(index) if self.array is None else self.item(index)

    def __bool__(self) -> bool:
        if self.array is None:
            return super().__len__() > 0
        return bool(self.length > 0)


def _refusing(name: str) -> Callable[..., Any]:
    plain = getattr(list, name)

    def call(self: Listed, *given: Any, **named: Any) -> Any:
        tracer = current()
        if self.array is not None or (tracer is not None and tracer.depth != self.depth):
            raise UnknownError(f"list.{name} of a list that grows in a loop, or in a branch")
        return plain(self, *given, **named)

    return call


for _name in (
    "__add__", "__contains__", "__delitem__", "__eq__", "__ge__", "__gt__", "__iadd__", "__imul__", "__le__", "__lt__",
    "__mul__", "__ne__", "__reversed__", "__rmul__", "__setitem__", "clear", "copy", "count", "extend", "index",
    "insert", "pop", "remove", "reverse", "sort",
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
    return list(values) if values.array is None else values


def is_grown(value: Any) -> bool:
    """Whether a value is a list with elements that only the code knows."""
    return type(value) is Listed and value.array is not None


WHOLE = frozenset({
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.sum, np.mean, np.max, np.min, np.prod, np.std, np.var,
    np.cumsum, np.argmax, np.argmin, np.any, np.all, np.median, np.sort, np.diff, np.dot, np.abs, np.sqrt, np.exp,
})  # fmt: skip
"""Functions that take a list for an array."""


@serves("lists")
def as_arrays(function: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of one of NumPy's functions of such a list, as one of an array: function, arguments, keywords."""
    if not any(map(is_grown, (*given, *named.values()))):
        return function, given, named
    if not given or not is_grown(given[0]) or any(map(is_grown, (*given[1:], *named.values()))):
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    array: Any = given[0].whole()
    axis = named.get("axis", given[1] if len(given) > 1 else 0)
    merged = array.ndim > 1 and axis == 0 and len(given) < 3 and not {*named} - {"axis"}
    if function is np.stack and len(given) < 3 and not {*named} - {"axis"} and type(axis) is int:
        return np.ascontiguousarray, (np.moveaxis(array, 0, axis),), {}
    if function is np.vstack and array.ndim == 2 and len(given) == 1 and not named:
        return np.copy, (array,), {}
    if function is np.column_stack and array.ndim == 2:
        return np.ascontiguousarray, (array.T,), {}
    is_row = array.ndim == 2 if function is np.hstack else array.ndim > 2 and function is np.vstack
    if merged and (function is np.concatenate or is_row):
        return np.reshape, (array, (-1, *array.shape[2:])), {}
    if function not in WHOLE:
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    return function, (array, *given[1:]), named
