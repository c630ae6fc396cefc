"""Peers of LSTM cells in NumPy."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.lstm import LSTMC1H1Attr, LSTMCtHtAttr
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import in_dtypes, in_layouts, outs, values


def activated(name: str, x: AnyArray) -> Any:
    """Apply an activation in plain NumPy: overflow on the way to 0 only warns."""
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
    retained = ct_1 * activated(act_gate, f)
    ct = np.add(activated(act_cand, c) * activated(act_gate, i), retained, out=out and out[0])
    if wp is not None:
        o = o + w_o * ct
    return ct, np.multiply(activated(act_cell, ct), activated(act_gate, o), out=out and out[1])


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
    yield from in_dtypes(gates, ct_1, bools=False)
    yield OrdinaryCall("float32 and float64", (gates, ct_1.astype(np.float64)))
    yield from in_layouts(gates, ct_1, wp)
    yield OrdinaryCall("empty", (gates[:0], ct_1[:0]))
    for (kind, first), second in zip(outs(ct_1).items(), outs(ct_1).values(), strict=True):
        yield OrdinaryCall(f"out={kind}", (gates, ct_1), {"out": (first, second)})
    both = (np.zeros_like(ct_1), np.zeros_like(ct_1))
    yield OrdinaryCall("out by position", (gates, ct_1, None, "sigmoid", "tanh", "tanh", both))
    yield OrdinaryCall("in place", (gates, ct_1), {"out": (ct_1, np.zeros_like(ct_1))})


@equivalent(LSTMC1H1Attr)
def lstm_c1h1(
    gates: Any,
    wp: Any = None,
    act_gate: str = "sigmoid",
    act_cand: str = "tanh",
    act_cell: str = "tanh",
    out: Any = None,
) -> Any:
    c, i, _, o = np.asarray(gates).reshape(4, -1)
    ct = np.multiply(activated(act_cand, c), activated(act_gate, i), out=out and out[0])
    if wp is not None:
        o = o + np.asarray(wp).reshape(3, -1)[2] * ct
    return ct, np.multiply(activated(act_cell, ct), activated(act_gate, o), out=out and out[1])


@peer(LSTMC1H1Attr)
def numpy_first(attr: LSTMC1H1Attr, gates: AnyArray, *rest: AnyArray) -> Bound:
    *peephole, ct, ht = rest
    wp = peephole[0] if peephole else None
    return partial(lstm_c1h1, gates, wp, attr.act_gate, attr.act_cand, attr.act_cell, (ct, ht))


@ordinary_calls(LSTMC1H1Attr)
def first_steps(elements: int) -> Iterator[OrdinaryCall]:
    d = elements // 4
    gates, wp, ct = values(4 * d), values(3 * d), values(d)
    yield OrdinaryCall("plain", (gates,))
    yield OrdinaryCall("peephole", (gates, wp))
    yield OrdinaryCall("wp by name", (gates,), {"wp": wp})
    for option in ("act_gate", "act_cand", "act_cell"):
        for name in ("sigmoid", "tanh", "relu", "identity"):
            yield OrdinaryCall(f"{option}={name}", (gates,), {option: name})
    yield OrdinaryCall("by position", (gates, wp, "sigmoid", "relu", "tanh"))
    yield from in_dtypes(gates, bools=False)
    yield from in_layouts(gates, wp)
    yield OrdinaryCall("empty", (gates[:0],))
    for (kind, first), second in zip(outs(ct).items(), outs(ct).values(), strict=True):
        yield OrdinaryCall(f"out={kind}", (gates,), {"out": (first, second)})
