"""Generated LSTM_CTHT: the whole step in one loop, the activations inlined."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.attrs.lstm import LSTMCtHtAttr
from jitkernels.loops.variants import widths_and_threads
from jitkernels.maths.sigmoid import sigmoid_float32, sigmoid_float64
from jitkernels.maths.tanh import tanh_float32, tanh_float64
from jitkernels.native.loop_nest import LoopNest
from jitkernels.native.source import inlined, vectors
from jitkernels.registry import Variant, implements

BLOCK = 1024
"""Elements that a thread gets at least."""


@inlined()
def identity(x: Any) -> Any:
    return x


FUNCTIONS: dict[str, dict[str, Any]] = {
    "sigmoid": {"float32": sigmoid_float32, "float64": sigmoid_float64},
    "tanh": {"float32": tanh_float32, "float64": tanh_float64},
    "identity": {"float32": identity, "float64": identity},
}


def variants(attr: LSTMCtHtAttr) -> list[Variant]:
    return widths_and_threads(attr.d // BLOCK)


@implements(LSTMCtHtAttr, variants=variants)
def lstm_ctht(attr: LSTMCtHtAttr, **variant: Any) -> LoopNest:
    number = np.dtype(attr.dtype).type
    lanes = machine.target().masked_lanes(attr.dtype, variant.get("vector_bytes", 64))

    @inlined()
    def relu(x: Any) -> Any:
        return max(x, number(0))  # x first: Python's max keeps it when it is NaN

    functions = {name: by_dtype[attr.dtype] for name, by_dtype in FUNCTIONS.items()} | {"relu": relu}
    gate, candidate, cell = functions[attr.act_gate], functions[attr.act_cand], functions[attr.act_cell]

    def plain(gates: Any, ct_1: Any, ct: Any, ht: Any, d: int, begin: int, end: int) -> None:
        for j in vectors(begin, end, lanes):
            new = candidate(gates[j]) * gate(gates[d + j]) + ct_1[j] * gate(gates[2 * d + j])
            ct[j] = new
            ht[j] = cell(new) * gate(gates[3 * d + j])

    def peephole(gates: Any, ct_1: Any, wp: Any, ct: Any, ht: Any, d: int, begin: int, end: int) -> None:
        for j in vectors(begin, end, lanes):
            old = ct_1[j]
            i, f = gates[d + j] + wp[j] * old, gates[2 * d + j] + wp[d + j] * old
            new = candidate(gates[j]) * gate(i) + old * gate(f)
            o = gates[3 * d + j] + wp[2 * d + j] * new
            ct[j] = new
            ht[j] = cell(new) * gate(o)

    signature = attr.signature()
    return LoopNest(
        f"lstm_ctht_{attr.dtype}",
        signature.c_arguments,
        peephole if attr.use_peephole else plain,
        extent=signature.index("d"),
        block=BLOCK,
        reads_first=True,
        **variant,
    )
