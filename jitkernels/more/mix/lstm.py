"""LSTM_CTHT from the kernels VMUL, VSIGMOID and VEXP, in chunks of the vectors."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.lstm import LSTMCtHtAttr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.attrs.vector import VMulAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.chunking import threads
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.more.mix.activation import activation
from jitkernels.more.mix.component import component

CHUNK_ELEMENTS = 1024
"""Elements per chunk: the three rows of the workspace and the inputs fit in the first-level cache."""


def variants(attr: LSTMCtHtAttr) -> list[Variant]:
    return threads(attr.d // CHUNK_ELEMENTS)


class LstmArrays(NamedTuple):
    """The arrays; the weights of the peepholes may be absent. ct may alias ct_1."""

    gates: Any
    ct_1: Any
    wp: Any
    ct: Any
    ht: Any


@implements(LSTMCtHtAttr, variants=variants)
def lstm_ctht(attr: LSTMCtHtAttr, parallel: bool = False) -> RangeKernel:
    gate, candidate, cell = (activation(name, attr.dtype) for name in (attr.act_gate, attr.act_cand, attr.act_cell))
    multiply = component(VMulAttr(n=CHUNK_ELEMENTS, dtype=attr.dtype))

    @inlined()
    def open_gate(gate_input: Any, weight: Any, state: Any, total: Any, result: Any, n: int) -> Any:
        """``result = gate(gate_input + weight * state)``, where weights may be absent."""
        status = 0
        if weight is None:
            status = gate(gate_input, result, n)
        else:
            status = multiply(weight, state, total, n)
            for i in range(n):
                total[i] = total[i] + gate_input[i]
            status = min(status, gate(total, result, n))
        return status

    # ct may alias ct_1: each chunk of ct is written after the last read of that chunk of ct_1.
    def body(arrays: LstmArrays, d: int, workspace: Any, begin: int, end: int) -> int:
        entered, opened, total = workspace, offset(workspace, CHUNK_ELEMENTS), offset(workspace, 2 * CHUNK_ELEMENTS)
        gates, wp, status = arrays.gates, arrays.wp, 0
        for at in range(begin, end, CHUNK_ELEMENTS):
            n = min(CHUNK_ELEMENTS, end - at)
            old, new, result = offset(arrays.ct_1, at), offset(arrays.ct, at), offset(arrays.ht, at)
            status = min(status, candidate(offset(gates, at), entered, n))
            status = min(status, open_gate(offset(gates, d + at), offset(wp, at), old, total, opened, n))
            status = min(status, multiply(entered, opened, entered, n))
            status = min(status, open_gate(offset(gates, 2 * d + at), offset(wp, d + at), old, total, opened, n))
            status = min(status, multiply(old, opened, opened, n))
            for i in range(n):
                new[i] = entered[i] + opened[i]
            status = min(status, cell(new, entered, n))
            status = min(status, open_gate(offset(gates, 3 * d + at), offset(wp, 2 * d + at), new, total, opened, n))
            status = min(status, multiply(entered, opened, result, n))
        return status

    return range_kernel_of(
        attr,
        f"lstm_ctht_{attr.dtype}",
        body,
        extent="d",
        block=CHUNK_ELEMENTS,
        parallel=parallel,
        workspace=3 * CHUNK_ELEMENTS * np.dtype(attr.dtype).itemsize,
        workspace_dtype=attr.dtype,
        reads_first=True,
    )
