"""The variables that a loop or branch changes, and the types in which they go from round to round.

Numbers are carried; a Python number becomes a NumPy scalar if that is what rounds make of it, an int a float. All else
has to be the same object after a round.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.places import line_of
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer, current, user_frame
from jitkernels.frontends.universal import cast_to, common
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node
from jitkernels.graph.scalars import is_known

WIDER = ("float16", "float32", "float64")
"""Floats of which derivatives take the wider for numbers that are one or the other."""
Kind = Any
"""What a variable holds: int, float or bool, the dtype of a NumPy scalar, None for all else, `Unset` for nothing."""


class Unset:
    """What a variable holds that has no value yet. Whatever is done with it, Python would not do it."""

    def __getattr__(self, name: str) -> Any:
        raise UnknownError(f"{unset()} may have no value: give it one before")

    def __bool__(self) -> Any:
        raise UnknownError(f"{unset()} may have no value: give it one before")

    __iter__ = __len__ = __index__ = __int__ = __float__ = __bool__


UNSET = Unset()
KEEP = "keep one dtype and shape throughout"
"""What to do with arrays that loops and branches choose."""


def unset() -> str:
    """The variables of the function that is at work which have no value, in words."""
    frame = user_frame()
    names = [name for name, one in frame.f_locals.items() if one is UNSET] if frame else []
    return " or ".join(map(repr, names)) or "a variable"


class State:
    """Names of variables, and how their values are read and set. `line`: where the loop or branch is.

    `guarded` are those that are asked for their values wherever they may have none (`rewriting.unbound`).
    """

    def __init__(
        self,
        names: tuple[str, ...],
        read: Callable[[], tuple[Any, ...]],
        put: Callable[[tuple[Any, ...]], None],
        line: int,
        guarded: Iterable[str] = (),
    ) -> None:
        self.names, self.read, self.put, self.line = names, read, put, line
        self.guarded = frozenset(guarded)
        self.entries: tuple[tuple[Any, Any], ...] = ()

    def with_entries(self, container: Any, keys: Sequence[Any]) -> "State":
        """The state with what a list or dict has at some places, which a loop or branch changes as well."""
        own = len(self.names)

        def read() -> tuple[Any, ...]:
            return (*self.read(), *(container[key] for key in keys))

        def put(values: tuple[Any, ...]) -> None:
            self.put(values[:own])
            for key, one in zip(keys, values[own:], strict=True):
                container[key] = one

        named = tuple(f"{type(container).__name__}[{key!r}]" for key in keys)
        found = State((*self.names, *named), read, put, self.line, self.guarded)
        found.entries = (*self.entries, *((container, key) for key in keys))
        return found

    def may_join(self, place: int) -> bool:
        """Whether a variable may have anything where it has no value: nobody reads it there."""
        return self.names[place] in self.guarded or not is_of_function(self.names[place])


def kind_of(value: Any) -> Kind:
    """The kind of a value."""
    if value is UNSET:
        return Unset
    if type(value) is Traced:
        if value.ndim or not (value.is_scalar or value.is_weak):
            return None
        return value.python or value.node.dtype
    if type(value) is Whole:
        return int
    if type(value) in (int, float, bool):
        return type(value) if type(value) is not int or abs(value) < 2**62 else None
    if isinstance(value, np.generic) and is_known(value.dtype):
        return value.dtype.name
    return None


def is_number(kind: Kind) -> bool:
    """Whether what a variable holds is a number, whose value goes from round to round."""
    return isinstance(kind, type | str) and kind is not Unset


def told(name: str) -> str:
    """A variable, or one that the rewriting has added, in words."""
    if is_of_function(name):
        return repr(name)
    return "the result" if name.startswith("_jk_value") else "the value of an expression"


def is_of_function(name: str) -> bool:
    """Whether a variable is one of the function's own, not one that its rewriting has added."""
    return not name.startswith("_jk_")


def joined(name: str, one: Kind, other: Kind, line: int = 0) -> Kind:
    """The kind of what is one or the other, in a loop or branch at a line. Raises UnknownError where there is none."""
    if one == other or other is Unset:
        return one
    if one is Unset:
        return other
    plain = (bool, int, float)
    if one is not None and other is not None:
        if one in plain and other in plain and bool not in (one, other):
            return common(one, other)
        if (one in plain) != (other in plain):
            python, dtype = (one, other) if one in plain else (other, one)
            found = common(python, dtype)
            if found == dtype and (python is not bool or dtype == "bool"):
                return dtype
        tracer = current()
        if tracer is not None and tracer.differentiates and one in WIDER and other in WIDER:
            return max(one, other, key=WIDER.index)
    raise UnknownError(
        f"{told(name)} is {_told(one)} here and {_told(other)} there: expected one type, as it has before",
        line_of(name, line) if line else 0,
    )


def _told(kind: Kind) -> str:
    return (
        "no number" if kind is None else "a Python " + kind.__name__ if isinstance(kind, type) else str(kind)
    )


def dtype_of(kind: Kind) -> str:
    """The dtype of the numbers of a kind."""
    return {int: "int64", float: "float64", bool: "bool"}.get(kind) or str(kind)


def node_of(tracer: Tracer, value: Any, kind: Kind) -> Node:
    """A value as a node of the dtype of a kind; zero for what has no value."""
    if value is UNSET:
        return construct.constant(0, dtype_of(kind))
    return cast_to(tracer, value, dtype_of(kind))


def may_lack(tracer: Tracer, value: Any) -> bool:
    """Whether a variable may have no value: it has none, or what stands for it in a round that others have to set."""
    return value is UNSET or (type(value) is Traced and id(value.node) in tracer.unset)


def note_lacking(tracer: Tracer, node: Node) -> None:
    """A node stands for a variable that may have no value."""
    tracer.unset[id(node)] = node


def number(tracer: Tracer, node: Node, kind: Kind) -> Traced:
    """A 0-d node as a number of a kind."""
    made = fresh(tracer, node, is_scalar=True)
    made.is_weak = kind in (int, float, bool)
    return made


def merged(tracer: Tracer, values: Sequence[Any]) -> Any:
    """The interval of a number that is one of some values; None where it is not known."""
    found = [ranges.interval(tracer, one) for one in values if one is not UNSET]
    known = [one for one in found if one is not None]
    return ranges.hull(known) if known and len(known) == len(found) else None
