"""LSTM and GRU by primitives of oneDNN.

They take weights in a layout of their own, to which the C code converts them at each call: a caller who passes arrays
does not say which of them are constant.
"""

from typing import Any, NamedTuple

from jitkernels.attrs.recurrence import GRUAttr, LSTMAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.more.onednn.primitives import GRU, LSTM, function_of, usable

ARGUMENTS = ("int64", *("void*",) * 10, *("int64",) * 8)
recurrence: Any = function_of("recurrence", ARGUMENTS)
"""``recurrence(kind, x, w_ih, ..., c_n, steps, batch, input, hidden, biased, initial, begin, end)``

An absent array may be any other.
"""


class RecurrenceArrays(NamedTuple):
    """The arrays of both rows; biases and initial states may be absent."""

    x: Any
    w_ih: Any
    w_hh: Any
    b_ih: Any
    b_hh: Any
    h0: Any
    y: Any
    h_n: Any


class RecurrenceExtents(NamedTuple):
    """The extents of all arrays."""

    steps: int
    batch: int
    input: int
    hidden: int


@implements(LSTMAttr, can_be_used=usable)
def lstm(attr: LSTMAttr) -> RangeKernel:
    biased, initial = int(attr.bias), int(attr.initial)

    def body(arrays: RecurrenceArrays, c0: Any, c_n: Any, extents: RecurrenceExtents, part: Range) -> Any:
        return recurrence(
            LSTM, arrays.x, arrays.w_ih, arrays.w_hh, arrays.b_ih, arrays.b_hh, arrays.h0, c0, arrays.y, arrays.h_n,
            c_n, extents.steps, extents.batch, extents.input, extents.hidden, biased, initial, part.begin, part.end,
        )  # fmt: skip

    return _range_kernel(attr, body)


@implements(GRUAttr, can_be_used=usable)
def gru(attr: GRUAttr) -> RangeKernel:
    biased, initial = int(attr.bias), int(attr.initial)

    def body(arrays: RecurrenceArrays, extents: RecurrenceExtents, part: Range) -> Any:
        return recurrence(
            GRU, arrays.x, arrays.w_ih, arrays.w_hh, arrays.b_ih, arrays.b_hh, arrays.h0, arrays.h0, arrays.y,
            arrays.h_n, arrays.h_n, extents.steps, extents.batch, extents.input, extents.hidden, biased, initial,
            part.begin, part.end,
        )  # fmt: skip

    return _range_kernel(attr, body)


def _range_kernel(attr: LSTMAttr | GRUAttr, body: Any) -> RangeKernel:
    return range_kernel_of(attr, f"{attr.name}_onednn", body, extent="batch")
