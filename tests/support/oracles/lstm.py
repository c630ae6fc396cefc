"""The oracle of the cells of an LSTM."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from oracles import ACTIVATIONS, oracle


@oracle
def lstm_ctht(attr: Any, gates: AnyArray, ct_1: AnyArray, wp: Any = None) -> list[AnyArray]:
    d = attr.d
    gate, candidate, cell = (ACTIVATIONS[name] for name in (attr.act_gate, attr.act_cand, attr.act_cell))
    c, i, f, o = (gates[part * d : (part + 1) * d] for part in range(4))
    if attr.use_peephole:
        i = i + wp[:d] * ct_1
        f = f + wp[d : 2 * d] * ct_1
    ct = candidate(c) * gate(i) + ct_1 * gate(f)
    if attr.use_peephole:
        o = o + wp[2 * d :] * ct
    return [ct, cell(ct) * gate(o)]


@oracle
def lstm_c1h1(attr: Any, gates: AnyArray, wp: Any = None) -> list[AnyArray]:
    d = attr.d
    gate, candidate, cell = (ACTIVATIONS[name] for name in (attr.act_gate, attr.act_cand, attr.act_cell))
    ct = candidate(gates[:d]) * gate(gates[d : 2 * d])
    o = gates[3 * d :] + wp[2 * d :] * ct if attr.use_peephole else gates[3 * d :]
    return [ct, cell(ct) * gate(o)]
