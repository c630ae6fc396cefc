"""NumPy reference of LSTM_CTHT."""

import numpy as np

from jitkernels.attrs.lstm import LSTMCtHtAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


def _activate(name: str, x: AnyArray) -> AnyArray:
    if name == "sigmoid":
        small = np.exp(-np.abs(x))
        found: AnyArray = np.where(x < 0, small, x.dtype.type(1)) / (1 + small)
        return found
    if name == "tanh":
        return np.tanh(x)
    return np.maximum(x, 0) if name == "relu" else x


@implements(LSTMCtHtAttr, compiles=True)
def lstm_ctht(attr: LSTMCtHtAttr, gates: AnyArray, ct_1: AnyArray, *rest: AnyArray) -> None:
    *peephole, ct, ht = rest
    c, i, f, o = gates.reshape(4, attr.d)
    with np.errstate(all="ignore"):
        if peephole:
            w_i, w_f, w_o = peephole[0].reshape(3, attr.d)
            i, f = i + w_i * ct_1, f + w_f * ct_1
        new = _activate(attr.act_cand, c) * _activate(attr.act_gate, i) + ct_1 * _activate(attr.act_gate, f)
        if peephole:
            o = o + w_o * new
        ct[...] = new
        np.multiply(_activate(attr.act_cell, new), _activate(attr.act_gate, o), out=ht)
