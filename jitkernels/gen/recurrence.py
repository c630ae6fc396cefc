"""Generated LSTM and GRU."""

from typing import Any

from jitkernels import dtypes, machine
from jitkernels.attrs.recurrence import GRUAttr, LSTMAttr
from jitkernels.loops import recurrence
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

BLOCK = 4
"""Rows of a batch that a thread gets at least."""
FEW, LARGE = 8, 128
"""Steps for which nothing is packed, and hidden units from which on packing takes as long as it saves in many."""
PARALLEL_WORK = 1 << 20
"""Operations from which on threads may pay."""


def variants(attr: LSTMAttr | GRUAttr) -> list[Variant]:
    """Vectors of each width, weights of the state packed or not for one row, threads that share rows of the batch."""
    several = attr.batch >= 4 * BLOCK and attr.operations() >= PARALLEL_WORK
    packs = [True]
    if attr.batch == 1:
        packs = [False, True] if attr.steps < FEW or attr.hidden >= LARGE else [True, False]
    return [
        {"vector_bytes": width, "packs": one, "parallel": parallel}
        for parallel in ((False, True) if several else (False,))
        for width in machine.target().widths
        for one in packs
    ]


@implements(LSTMAttr, variants=variants)
def lstm(attr: LSTMAttr, vector_bytes: int = 64, packs: bool = True, parallel: bool = False) -> LoopNest:
    shape = recurrence.shape_of(attr.dtype, 4, machine.target(), vector_bytes)
    step = recurrence.lstm_step(shape)
    made = recurrence.layer_of(shape, step, biased=attr.bias, initial=attr.initial, packs=packs)
    layer = made.function

    def whole(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, workspace, begin, end
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, c_n, steps, batch, inputs, hidden, workspace, begin, end
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(x, w_ih, w_hh, x, x, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, workspace, begin, end)

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(x, w_ih, w_hh, x, x, x, x, y, h_n, c_n, steps, batch, inputs, hidden, workspace, begin, end)

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial], made, shape, parallel)


@implements(GRUAttr, variants=variants)
def gru(attr: GRUAttr, vector_bytes: int = 64, packs: bool = True, parallel: bool = False) -> LoopNest:
    shape = recurrence.shape_of(attr.dtype, 3, machine.target(), vector_bytes)
    step = recurrence.gru_step(shape)
    made = recurrence.layer_of(shape, step, biased=attr.bias, initial=attr.initial, packs=packs)
    layer = made.function

    def whole(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(
            x,
            w_ih,
            w_hh,
            b_ih,
            b_hh,
            h0,
            h0,
            y,
            h_n,
            h_n,
            steps,
            batch,
            inputs,
            hidden,
            workspace,
            begin,
            end,
        )

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, h_n, steps, batch, inputs, hidden, workspace, begin, end
        )

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(x, w_ih, w_hh, x, x, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, workspace, begin, end)

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
    ) -> None:  # fmt: skip
        layer(x, w_ih, w_hh, x, x, x, x, y, h_n, h_n, steps, batch, inputs, hidden, workspace, begin, end)

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial], made, shape, parallel)


def _nest(attr: Any, body: Any, made: recurrence.Layer, shape: recurrence.Shape, parallel: bool) -> LoopNest:
    signature = attr.signature()
    return LoopNest(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("batch"),
        block=BLOCK if parallel else 1,
        parallel=parallel,
        workspace=made.bytes_of,
        workspace_dtype=attr.dtype,
        vector_bytes=shape.lanes * dtypes.named(attr.dtype).size,
        flags=("contract",),
    )
