"""The oracle of LSTM and GRU, gate by gate, and of their forms with packed weights."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, sigmoid, tanh


def product(x: AnyArray, w: AnyArray) -> AnyArray:
    """Return x @ w.T; for long double NumPy has no faster way."""
    return np.asarray(np.matmul(x, w.T), WIDE)


@oracle
def lstm(
    attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, b_ih: Any = 0, b_hh: Any = 0, h0: Any = None, c0: Any = None
) -> list[AnyArray]:
    d = attr.hidden
    rows = [slice(gate * d, (gate + 1) * d) for gate in range(4)]
    h, c = h0, np.zeros((attr.batch, d), WIDE) if c0 is None else c0
    shown = []
    for inputs in x:
        sums = product(inputs, w_ih) + b_ih + b_hh
        if h is not None:
            sums = sums + product(h, w_hh)
        i, f, g, o = (sums[:, row] for row in rows)
        c = sigmoid(f) * c + sigmoid(i) * tanh(g)
        h = sigmoid(o) * tanh(c)
        shown.append(h)
    last = np.zeros((attr.batch, d), WIDE) if h is None else h
    return [np.reshape(np.array(shown, WIDE), (attr.steps, attr.batch, d)), last, c]


@oracle
def gru(
    attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, b_ih: Any = 0, b_hh: Any = 0, h0: Any = None
) -> list[AnyArray]:
    d = attr.hidden
    rows = [slice(gate * d, (gate + 1) * d) for gate in range(3)]
    h, shown = np.zeros((attr.batch, d), WIDE) if h0 is None else h0, []
    for t, inputs in enumerate(x):
        a = product(inputs, w_ih) + b_ih
        b = (product(h, w_hh) if t or h0 is not None else np.zeros_like(a)) + b_hh
        r, z = (sigmoid(a[:, row] + b[:, row]) for row in rows[:2])
        n = tanh(a[:, rows[2]] + r * b[:, rows[2]])
        h = (1 - z) * n + z * h
        shown.append(h)
    return [np.reshape(np.array(shown, WIDE), (attr.steps, attr.batch, d)), h]


def unpacked(attr: Any, panels: AnyArray, gates: int) -> AnyArray:
    """Take the rows of weights out of their panels of 16 units, one by one."""
    rows = [panels[unit // 16, :, gate * 16 + unit % 16] for gate in range(gates) for unit in range(attr.hidden)]
    return np.array(rows, panels.dtype).reshape(gates * attr.hidden, panels.shape[1])


@oracle
def lstm_packed(attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: Any, **named: Any) -> list[AnyArray]:
    return lstm(attr, x, unpacked(attr, w_ih, 4), unpacked(attr, w_hh, 4), *rest, **named)


@oracle
def gru_packed(attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: Any, **named: Any) -> list[AnyArray]:
    return gru(attr, x, unpacked(attr, w_ih, 3), unpacked(attr, w_hh, 3), *rest, **named)
