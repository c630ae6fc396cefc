"""LSTM_CTHT from the kernels VMUL, VSIGMOID and VEXP, in chunks of the vectors."""

from typing import Any

import numpy as np

from jitkernels.attrs.lstm import LSTMCtHtAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.vector import VMulAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.chunking import threads
from jitkernels.more.mix.activation import activation
from jitkernels.more.mix.component import component

PIECE = 1024
"""Elements per chunk: the three rows of the workspace and the inputs fit in the first-level cache."""


def variants(attr: LSTMCtHtAttr) -> list[Variant]:
    return threads(attr.d // PIECE)


@implements(LSTMCtHtAttr, variants=variants)
def lstm_ctht(attr: LSTMCtHtAttr, parallel: bool = False) -> LoopNest:
    gate, candidate, cell = (activation(name, attr.dtype) for name in (attr.act_gate, attr.act_cand, attr.act_cell))
    multiply = component(VMulAttr(n=PIECE, dtype=attr.dtype))

    @inlined()
    def add_product(gate_input: Any, weight: Any, state: Any, result: Any, n: int) -> Any:
        status = multiply(weight, state, result, n)
        for i in range(n):
            result[i] = result[i] + gate_input[i]
        return status

    # ct may alias ct_1: each chunk of ct is written after the last read of that chunk of ct_1.
    def plain(gates: Any, ct_1: Any, ct: Any, ht: Any, d: int, workspace: Any, begin: int, end: int) -> int:
        entered, forgotten = workspace, offset(workspace, PIECE)
        status = 0
        for at in range(begin, end, PIECE):
            n = min(PIECE, end - at)
            new, result = offset(ct, at), offset(ht, at)
            status = min(status, candidate(offset(gates, at), entered, n))
            status = min(status, gate(offset(gates, d + at), forgotten, n))
            status = min(status, multiply(entered, forgotten, entered, n))
            status = min(status, gate(offset(gates, 2 * d + at), forgotten, n))
            status = min(status, multiply(offset(ct_1, at), forgotten, forgotten, n))
            for i in range(n):
                new[i] = entered[i] + forgotten[i]
            status = min(status, cell(new, entered, n))
            status = min(status, gate(offset(gates, 3 * d + at), forgotten, n))
            status = min(status, multiply(entered, forgotten, result, n))
        return status

    def peephole(gates: Any, ct_1: Any, wp: Any, ct: Any, ht: Any, d: int, workspace: Any, begin: int, end: int) -> int:
        entered, forgotten, total = workspace, offset(workspace, PIECE), offset(workspace, 2 * PIECE)
        status = 0
        for at in range(begin, end, PIECE):
            n = min(PIECE, end - at)
            old, new, result = offset(ct_1, at), offset(ct, at), offset(ht, at)
            status = min(status, candidate(offset(gates, at), entered, n))
            status = min(status, add_product(offset(gates, d + at), offset(wp, at), old, total, n))
            status = min(status, gate(total, forgotten, n))
            status = min(status, multiply(entered, forgotten, entered, n))
            status = min(status, add_product(offset(gates, 2 * d + at), offset(wp, d + at), old, total, n))
            status = min(status, gate(total, forgotten, n))
            status = min(status, multiply(old, forgotten, forgotten, n))
            for i in range(n):
                new[i] = entered[i] + forgotten[i]
            status = min(status, cell(new, entered, n))
            status = min(status, add_product(offset(gates, 3 * d + at), offset(wp, 2 * d + at), new, total, n))
            status = min(status, gate(total, forgotten, n))
            status = min(status, multiply(entered, forgotten, result, n))
        return status

    signature = attr.signature()
    return LoopNest(
        f"lstm_ctht_{attr.dtype}",
        signature.c_arguments,
        peephole if attr.use_peephole else plain,
        extent=signature.index("d"),
        block=PIECE,
        parallel=parallel,
        workspace=3 * PIECE * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,
    )
