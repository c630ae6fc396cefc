"""Results that are put together by numbers of the code: lists of so many elements, constants by choice."""

from collections.abc import Callable
from typing import Any

from jitkernels.frontends.flow.alternatives import OTHER, Chosen
from jitkernels.frontends.flow.counted import Finished, Later
from jitkernels.frontends.flow.state import UNSET

Make = Callable[[Any], Any]
"""What makes a result of what is known when the code has run."""


def chosen(value: Chosen, make: Callable[[Any], Make]) -> Make:
    """A constant, or something else, as a number says."""
    constants = value.choice.constants
    tag = make(value.tag)
    if value.other is UNSET:
        return lambda known: constants[tag(known) - 1]
    other = make(value.other)

    def made(known: Any) -> Any:
        which = tag(known)
        return other(known) if which == OTHER else constants[which - 1]

    return made


def finished(value: Finished, output: Callable[[Any, Any], int], in_rows: set[int]) -> Make:
    """A list, of whose elements the code has counted how many there are."""
    columns = [output(one.node, one) for one in value.columns]
    ends = output(value.ends.node, value.ends)
    in_rows.update((*columns, ends))
    return lambda known: value.made([known.arrays[number] for number in columns], known.arrays[ends])


def later(value: Later, make: Callable[[Any], Make]) -> Make:
    """What a function makes of it."""
    inner, function = make(value.given), value.function
    return lambda known: function(inner(known))
