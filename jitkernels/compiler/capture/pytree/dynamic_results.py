"""Results whose structure depends on computed numbers: lists of computed length, tagged constants."""

from collections.abc import Callable
from typing import Any

from jitkernels.compiler.capture.control_flow.dynamic_list import DeferredResult, ListSnapshot
from jitkernels.compiler.capture.control_flow.loop_state import UNSET
from jitkernels.compiler.capture.control_flow.tagged_union import OTHER, TaggedUnion

Make = Callable[[Any], Any]
"""Builds a part of the result after the code has run."""


def build_tagged(value: TaggedUnion, make: Callable[[Any], Make]) -> Make:
    """A constant or another object, selected by a computed tag."""
    constants = value.alternatives.constants
    tag = make(value.tag)
    if value.other is UNSET:
        return lambda known: constants[tag(known) - 1]
    other = make(value.other)

    def build(known: Any) -> Any:
        which = tag(known)
        return other(known) if which == OTHER else constants[which - 1]

    return build


def build_list(value: ListSnapshot, output: Callable[[Any, Any], int], in_rows: set[int]) -> Make:
    """A list whose length the code has computed."""
    columns = [output(item.node, item) for item in value.columns]
    ends = output(value.ends.node, value.ends)
    in_rows.update((*columns, ends))
    return lambda known: value.build([known.arrays[number] for number in columns], known.arrays[ends])


def build_later(value: DeferredResult, make: Callable[[Any], Make]) -> Make:
    """The result of a Python function of a later known value."""
    inner, function = make(value.operand), value.function
    return lambda known: function(inner(known))


def build_with_repeated(make: Make, known: Any) -> Any:
    """Build a result in which an object occurs more than once."""
    return make(known._replace(repeated={}))


def build_once(key: int, make: Make, known: Any) -> Any:
    """A repeated part of a result: the same object at each occurrence."""
    assert known.repeated is not None, "see `plan_result`"
    if key not in known.repeated:
        known.repeated[key] = make(known)
    return known.repeated[key]
