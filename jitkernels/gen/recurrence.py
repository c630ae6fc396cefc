"""Generated LSTM and GRU."""

from typing import Any

from jitkernels import dtypes, machine
from jitkernels.attrs.recurrence import GRUAttr, LSTMAttr
from jitkernels.loops import recurrence
from jitkernels.native.loop_nest import LoopNest
from jitkernels.registry import Variant, implements

BLOCKS, SHARE = 2, 1 << 15
"""Blocks of units that a thread gets at least, and products of a step with the weights of the state."""
FEW, SOME = 8, 24
"""Steps for which nothing is packed, and those that packing takes as long as it saves in where units are many."""
LARGE, HUGE = 128, 300
"""Hidden units that are many, and those whose weights come from behind the caches, packed or not."""


def variants(attr: LSTMAttr | GRUAttr) -> list[Variant]:
    """Vectors of each width, weights of the state packed or not for one row, threads that share the hidden units."""
    several = attr.batch * attr.gates * attr.hidden**2 >= 2 * SHARE
    packs = [True]
    if attr.batch == 1:
        pays = attr.steps >= (FEW if attr.hidden < LARGE else SOME) and attr.hidden < HUGE
        packs = [True, False] if pays else [False, True]
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
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, c0: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, h0, c0, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any, c_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, x, x, y, h_n, c_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

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
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    def without_state(
        x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, b_ih, b_hh, x, x, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    def without_bias(
        x: Any, w_ih: Any, w_hh: Any, h0: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, h0, h0, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    def without_both(
        x: Any, w_ih: Any, w_hh: Any, y: Any, h_n: Any,
        steps: int, batch: int, inputs: int, hidden: int, workspace: Any, begin: int, end: int,
        words: Any, member: int, members: int,
    ) -> None:  # fmt: skip
        layer(
            x, w_ih, w_hh, x, x, x, x, y, h_n, h_n, steps, batch, inputs, hidden, workspace,
            begin, end, words, member, members,
        )  # fmt: skip

    bodies = {
        (True, True): whole, (True, False): without_state, (False, True): without_bias, (False, False): without_both
    }  # fmt: skip
    return _nest(attr, bodies[attr.bias, attr.initial], made, shape, parallel)


def _nest(attr: Any, body: Any, made: recurrence.Layer, shape: recurrence.Shape, parallel: bool) -> LoopNest:
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
        workspace=made.bytes_of,
        workspace_dtype=attr.dtype,
        vector_bytes=shape.lanes * dtypes.named(attr.dtype).size,
        flags=("contract",),
    )
