"""LSTM and GRU by primitives of oneDNN.

They take weights in a layout of their own, to which the C code converts them at each call: a caller who passes arrays
does not say which of them are constant.
"""

from typing import Any

from jitkernels.attrs.recurrence import GRUAttr, LSTMAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.more.onednn.primitives import GRU, LSTM, function_of, usable

ARGUMENTS = ("int64", *("void*",) * 10, *("int64",) * 8)
recurrence: Any = function_of("recurrence", ARGUMENTS)
"""``recurrence(kind, x, w_ih, ..., c_n, steps, batch, input, hidden, biased, initial, begin, end)``

An absent array may be any other.
"""


@implements(LSTMAttr, can_be_used=usable)
def lstm(attr: LSTMAttr) -> LoopNest:
    def whole(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            LSTM, x, w_ih, w_hh, b_ih, b_hh, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, 1, 1, begin, end
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            LSTM, x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, c_n, steps, batch, inputs, hidden, 1, 0, begin, end
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            LSTM, x, w_ih, w_hh, x, x, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, 0, 1, begin, end
        )  # fmt: skip

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            LSTM, x, w_ih, w_hh, x, x, x, x, y, h_n, c_n, steps, batch, inputs, hidden, 0, 0, begin, end
        )  # fmt: skip

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial])


@implements(GRUAttr, can_be_used=usable)
def gru(attr: GRUAttr) -> LoopNest:
    def whole(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            GRU, x, w_ih, w_hh, b_ih, b_hh, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, 1, 1, begin, end
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            GRU, x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, h_n, steps, batch, inputs, hidden, 1, 0, begin, end
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            GRU, x, w_ih, w_hh, x, x, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, 0, 1, begin, end
        )  # fmt: skip

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int,
    ) -> Any:  # fmt: skip
        return recurrence(
            GRU, x, w_ih, w_hh, x, x, x, x, y, h_n, h_n, steps, batch, inputs, hidden, 0, 0, begin, end
        )  # fmt: skip

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial])


def _nest(attr: LSTMAttr | GRUAttr, body: Any) -> LoopNest:
    signature, name = attr.signature(), attr.name
    return LoopNest(f"{name}_onednn", signature.c_arguments, body, extent=signature.index("batch"))
