"""Variables that have another array on each side of a branch: a new one, which has the elements of one or the other.

It may be an array that others have as well. Then it is neither written to nor given back, as nobody could tell which.
"""

from collections.abc import Sequence
from typing import Any

from jitkernels.frontends.flow import rebinding
from jitkernels.frontends.flow.state import UNSET, kind_of, told
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import Node
from jitkernels.records import record


class SidesError(UnknownError):
    """The sides of a branch give a variable what code cannot choose between."""


@record
class Sides:
    """What is like the arrays that a variable has; `values` are those, one for each side."""

    like: Traced
    values: tuple[Any, ...]

    def nothing(self) -> Node:
        """What the array is before one side has written to it."""
        zero = construct.constant(0, self.like.node.dtype)
        return construct.broadcast_to(zero, self.like.extents)

    def after(self, tracer: Tracer, item: Node, before: Sequence[Any], start: int) -> Traced:
        """The array behind the branch."""
        made = fresh(tracer, item)
        for one in self.values:
            if type(one) is not Traced:
                continue
            storage = one.view.storage
            made.view.storage.choices.append(storage)
            made.view.storage.views |= one.view.parent is not None
            for other in [*storage.doubts]:  # what one of the sides may be, this may be
                made.view.storage.doubt(other, is_whole=not (storage.views or one.view.parent is not None))
            if storage.born < start and not rebinding.own([one], before)[0]:
                made.view.storage.doubt(storage)
        return made


def sides_of(name: str, values: Sequence[Any], *, joins: bool) -> Sides:
    """The arrays of a variable. Raises SidesError where they are none, or different ones.

    `joins`: nobody reads it where it has no value.
    """
    arrays = [one for one in values if one is not UNSET]
    like = arrays[0]
    if len(arrays) < len(values) and not joins:
        raise SidesError(f"{told(name)} has a value on one side of a branch only")
    for one in arrays:
        if type(one) is not Traced or kind_of(one) is not None or not one.ndim:
            other = f"is {_told(arrays[-1])}" if len(arrays) == len(values) else "has no value"
            raise SidesError(
                f"{told(name)} is {_told(arrays[0])} on one side of a branch and {other} on the other"
            )
    for one in arrays[1:]:
        pairs = list(zip(like.extents, one.extents, strict=False))
        is_same = like.ndim == one.ndim and all(extents.same(a, b) or bool(a == b) for a, b in pairs)
        if one.dtype != like.dtype or not is_same:
            raise SidesError(
                f"{told(name)} is {_told(like)} on one side of a branch and {_told(one)} on the other"
            )
    if any(one.view.is_c() is not True for one in arrays):
        raise SidesError(f"{told(name)} is an array whose elements do not lie row by row")
    return Sides(like, tuple(values))


def _told(value: Any) -> str:
    if type(value) is Traced and value.ndim:
        return f"an array of dtype {value.dtype} and shape ({', '.join(map(str, value.shape))})"
    return (
        "None" if value is None else f"a {type(value).__name__}" if type(value) is not Traced else "a number"
    )
