"""What NumPy has for LSTM_CTHT."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.lstm import LSTMCtHtAttr
from jitkernels.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.peers.forms import DTYPES, LAYOUTS, outs, values
from jitkernels.signature import AnyArray


def _activated(name: str, x: AnyArray) -> Any:
    if name == "sigmoid":
        return 1 / (1 + np.exp(-x))
    if name == "tanh":
        return np.tanh(x)
    return np.maximum(x, 0) if name == "relu" else x


@equivalent(LSTMCtHtAttr)
def lstm_ctht(
    gates: Any,
    ct_1: Any,
    wp: Any = None,
    act_gate: str = "sigmoid",
    act_cand: str = "tanh",
    act_cell: str = "tanh",
    out: Any = None,
) -> Any:
    gates, ct_1 = np.asarray(gates), np.asarray(ct_1)
    c, i, f, o = gates.reshape(4, -1)
    if wp is not None:
        w_i, w_f, w_o = np.asarray(wp).reshape(3, -1)
        i, f = i + w_i * ct_1, f + w_f * ct_1
    kept = ct_1 * _activated(act_gate, f)
    ct = np.add(_activated(act_cand, c) * _activated(act_gate, i), kept, out=out and out[0])
    if wp is not None:
        o = o + w_o * ct
    return ct, np.multiply(_activated(act_cell, ct), _activated(act_gate, o), out=out and out[1])


@peer(LSTMCtHtAttr)
def numpy_lstm(attr: LSTMCtHtAttr, gates: AnyArray, ct_1: AnyArray, *rest: AnyArray) -> Bound:
    *peephole, ct, ht = rest
    wp = peephole[0] if peephole else None
    return partial(lstm_ctht, gates, ct_1, wp, attr.act_gate, attr.act_cand, attr.act_cell, (ct, ht))


@ordinary_calls(LSTMCtHtAttr)
def steps(elements: int) -> Iterator[OrdinaryCall]:
    d = elements // 4
    gates, ct_1, wp = values(4 * d), values(d), values(3 * d)
    yield OrdinaryCall("plain", (gates, ct_1))
    yield OrdinaryCall("peephole", (gates, ct_1, wp))
    yield OrdinaryCall("wp by name", (gates, ct_1), {"wp": wp})
    for name in ("sigmoid", "tanh", "relu", "identity"):
        yield OrdinaryCall(f"act_gate={name}", (gates, ct_1), {"act_gate": name})
        yield OrdinaryCall(f"act_cand={name}", (gates, ct_1), {"act_cand": name})
        yield OrdinaryCall(f"act_cell={name}", (gates, ct_1), {"act_cell": name})
    yield OrdinaryCall("by position", (gates, ct_1, wp, "sigmoid", "relu", "tanh"))
    for dtype in DTYPES[:-1]:
        yield OrdinaryCall(dtype, (gates.astype(dtype), ct_1.astype(dtype)))
    yield OrdinaryCall("float32 and float64", (gates, ct_1.astype(np.float64)))
    for name, form in LAYOUTS.items():
        yield OrdinaryCall(name, (form(gates), form(ct_1), form(wp)))
    yield OrdinaryCall("empty", (gates[:0], ct_1[:0]))
    for (kind, first), second in zip(outs(ct_1).items(), outs(ct_1).values(), strict=True):
        yield OrdinaryCall(f"out={kind}", (gates, ct_1), {"out": (first, second)})
    both = (np.zeros_like(ct_1), np.zeros_like(ct_1))
    yield OrdinaryCall("out by position", (gates, ct_1, None, "sigmoid", "tanh", "tanh", both))
    yield OrdinaryCall("in place", (gates, ct_1), {"out": (ct_1, np.zeros_like(ct_1))})
