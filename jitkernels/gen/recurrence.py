"""Generated LSTM and GRU."""

from typing import Any

from jitkernels.attrs.recurrence import GRUAttr, LSTMAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.core import cpu_target, dtypes
from jitkernels.microkernels.sequence import rnn

BLOCKS, SHARE = 2, 1 << 15
"""Least blocks of units per thread, and least multiply-adds of a step with the weights of the state."""
FEW, SOME = 8, 24
"""Steps up to which nothing is packed, and up to which packing does not pay where units are many."""
LARGE, HUGE = 128, 300
"""Hidden units that count as many, and those whose weights exceed the caches, packed or not."""


def variants(attr: LSTMAttr | GRUAttr) -> list[Variant]:
    """List the variants: vector width, weights of the state packed or not for one row, threads by hidden units."""
    several = attr.batch * attr.gates * attr.hidden**2 >= 2 * SHARE
    packs = [True]
    if attr.batch == 1:
        pays = attr.steps >= (FEW if attr.hidden < LARGE else SOME) and attr.hidden < HUGE
        packs = [True, False] if pays else [False, True]
    return [
        {"vector_bytes": width, "packs": is_packed, "parallel": parallel}
        for parallel in ((False, True) if several else (False,))
        for width in cpu_target.target().widths
        for is_packed in packs
    ]


@implements(LSTMAttr, variants=variants)
def lstm(attr: LSTMAttr, vector_bytes: int = 64, packs: bool = True, parallel: bool = False) -> LoopNest:
    shape = rnn.shape_of(attr.dtype, 4, cpu_target.target(), vector_bytes)
    step = rnn.lstm_step(shape)
    rnn_layer = rnn.layer_of(shape, step, biased=attr.bias, initial=attr.initial, packs=packs)
    layer = rnn_layer.function

    def whole(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, x, x, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial], rnn_layer, shape, parallel)


@implements(GRUAttr, variants=variants)
def gru(attr: GRUAttr, vector_bytes: int = 64, packs: bool = True, parallel: bool = False) -> LoopNest:
    shape = rnn.shape_of(attr.dtype, 3, cpu_target.target(), vector_bytes)
    step = rnn.gru_step(shape)
    rnn_layer = rnn.layer_of(shape, step, biased=attr.bias, initial=attr.initial, packs=packs)
    layer = rnn_layer.function

    def whole(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, thread: int, team_size: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, x, x, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, thread, team_size,
        )  # fmt: skip

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial], rnn_layer, shape, parallel)


def _nest(attr: Any, body: Any, layer: rnn.Layer, shape: rnn.Shape, parallel: bool) -> LoopNest:
    signature, lanes, gates = attr.signature(), shape.lanes, shape.gates

    def threads(steps: int, batch: int, inputs: int, hidden: int, begin: int, end: int) -> int:
        if not parallel:
            return 1
        return min(hidden // (BLOCKS * lanes), (end - begin) * gates * hidden * hidden // SHARE)

    return LoopNest(
        f"{attr.name}_{attr.dtype}",
        signature.c_arguments,
        body,
        extent=signature.index("batch"),
        together=threads,
        workspace=layer.bytes_of,
        workspace_dtype=attr.dtype,
        vector_bytes=shape.lanes * dtypes.named(attr.dtype).size,
        flags=("contract",),
    )
