"""NumPy references of LSTM_CTHT and LSTM_C1H1."""

import numpy as np

from jitkernels.attrs.lstm import LSTMC1H1Attr, LSTMCtHtAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(LSTMCtHtAttr, compiles=True)
def lstm_ctht(attr: LSTMCtHtAttr, gates: AnyArray, ct_1: AnyArray, *rest: AnyArray) -> None:
    *peephole, ct, ht = rest
    c, i, f, o = gates.reshape(4, attr.d)
    with np.errstate(all="ignore"):
        if peephole:
            w_i, w_f, w_o = peephole[0].reshape(3, attr.d)
            i, f = i + w_i * ct_1, f + w_f * ct_1
        gated = special_functions.activate(attr.act_cand, c) * special_functions.activate(attr.act_gate, i)
        new = gated + ct_1 * special_functions.activate(attr.act_gate, f)
        if peephole:
            o = o + w_o * new
        ct[...] = new
        np.multiply(
            special_functions.activate(attr.act_cell, new), special_functions.activate(attr.act_gate, o), out=ht
        )


@implements(LSTMC1H1Attr, compiles=True)
def lstm_c1h1(attr: LSTMC1H1Attr, gates: AnyArray, *rest: AnyArray) -> None:
    *peephole, ct, ht = rest
    c, i, _, o = gates.reshape(4, attr.d)
    with np.errstate(all="ignore"):
        new = special_functions.activate(attr.act_cand, c) * special_functions.activate(attr.act_gate, i)
        if peephole:
            _, _, w_o = peephole[0].reshape(3, attr.d)
            o = o + w_o * new
        ct[...] = new
        np.multiply(
            special_functions.activate(attr.act_cell, new), special_functions.activate(attr.act_gate, o), out=ht
        )
