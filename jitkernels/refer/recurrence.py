"""NumPy references of LSTM and GRU, and of their forms with packed weights."""

import numpy as np

from jitkernels.attrs.recurrence import GRUAttr, GRUPackedAttr, LSTMAttr, LSTMPackedAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(LSTMAttr)
def lstm(attr: LSTMAttr, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    *inputs, y, h_n, c_n = rest
    h_n[...], c_n[...] = inputs[-2:] if attr.initial else (0, 0)
    with np.errstate(all="ignore"):
        for t in range(attr.steps):
            sums = x[t] @ w_ih.T
            if attr.initial or t:
                sums += h_n @ w_hh.T
            if attr.bias:
                sums += inputs[0] + inputs[1]
            i, f, g, o = np.split(sums, 4, axis=1)
            c_n[...] = special_functions.activate("sigmoid", f) * c_n + special_functions.activate(
                "sigmoid", i
            ) * np.tanh(g)
            h_n[...] = y[t] = special_functions.activate("sigmoid", o) * np.tanh(c_n)


@implements(GRUAttr)
def gru(attr: GRUAttr, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    *inputs, y, h_n = rest
    h_n[...] = inputs[-1] if attr.initial else 0
    with np.errstate(all="ignore"):
        for t in range(attr.steps):
            of_x = x[t] @ w_ih.T
            of_h = h_n @ w_hh.T if attr.initial or t else np.zeros_like(of_x)
            if attr.bias:
                of_x, of_h = of_x + inputs[0], of_h + inputs[1]
            (a_r, a_z, a_n), (b_r, b_z, b_n) = np.split(of_x, 3, axis=1), np.split(of_h, 3, axis=1)
            z = special_functions.activate("sigmoid", a_z + b_z)
            n = np.tanh(a_n + special_functions.activate("sigmoid", a_r + b_r) * b_n)
            h_n[...] = y[t] = n + z * (h_n - n)


@implements(LSTMPackedAttr)
def lstm_packed(attr: LSTMPackedAttr, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    lstm(attr, x, attr.unpack(w_ih), attr.unpack(w_hh), *rest)


@implements(GRUPackedAttr)
def gru_packed(attr: GRUPackedAttr, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    gru(attr, x, attr.unpack(w_ih), attr.unpack(w_hh), *rest)
