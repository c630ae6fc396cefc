"""`numpy.searchsorted` and `numpy.digitize`: binary searches in compiled code."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.iterables import element_loop
from jitkernels.compiler.capture.control_flow.loop_state import State, as_number
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node


class _Range(State):
    """The indices that are left: from `low` to `high`, exclusive."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high
        super().__init__(("_jk_low", "_jk_high"), lambda: (self.low, self.high), lambda values: self.set(*values), 0)

    def set(self, low: Any, high: Any) -> None:
        self.low, self.high = low, high


def position(table: Traced, value: Traced, side: str) -> Any:
    """The number of elements of a sorted vector that are less than a number, or with `side` right, not greater."""
    tracer = table.tracer
    common = np.promote_types(table.dtype, value.dtype).name
    wanted = builder.cast(value.node, common)
    left = _Range(0, table.shape[0])

    def body() -> None:
        low, high = as_int(tracer, left.low), as_int(tracer, left.high)
        half = elementwise("right_shift", elementwise("subtract", high, low), 1)
        middle = elementwise("add", low, half)
        intervals.note(tracer, middle, (0, table.extents[0] - 1))
        element = builder.cast(table[as_number(tracer, middle, int)].node, common)
        is_before = _less(element, wanted) if side == "left" else elementwise("logical_not", _less(wanted, element))
        behind = elementwise("add", middle, 1)
        low, high = elementwise("where", is_before, behind, low), elementwise("where", is_before, high, middle)
        for bound in (low, high):
            intervals.note(tracer, bound, (0, table.extents[0]))
        left.set(as_number(tracer, low, int), as_number(tracer, high, int))

    SERVICES["while"](lambda: left.low < left.high, body, left)
    return as_number(tracer, as_int(tracer, left.low), "int64")


def positions(table: Traced, values: Traced, side: str) -> Any:
    """The `position` of each element of an array, as an array of its shape."""
    flat = values if values.ndim == 1 else values.reshape(-1)
    places: Any = SERVICES["zeros"](table.tracer, flat.shape[0], "int64")

    def body(index: Any) -> None:
        places[index] = position(table, flat[index], side)

    nothing = State((), lambda: (), lambda _: None, 0)
    SERVICES["for"](element_loop(flat.shape[0]), None, body, nothing)
    return places if values.ndim == 1 else places.reshape(values.shape)


def _less(left: Node, right: Node) -> Node:
    """Whether a number comes before another one: NaN is the last one."""
    is_less = elementwise("less", left, right)
    if np.dtype(left.dtype).kind != "f":
        return is_less
    is_last = elementwise("logical_and", elementwise("isnan", right), elementwise("equal", left, left))
    return elementwise("logical_or", is_less, is_last)
