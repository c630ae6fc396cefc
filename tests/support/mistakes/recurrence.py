"""LSTM and GRU, their forms with packed weights, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import sigmoid

MISTAKES = {
    "lstm": {
        "gates in another order": ("i, f, g, o =", "i, g, f, o ="),
        "gates of Paddle": ("i, f, g, o =", "g, i, f, o ="),
        "one bias alone": ("given[0] + given[1]", "given[0]"),
        "state of the row before": ("h_n @ w_hh.T", "np.roll(h_n, 1, 0) @ w_hh.T"),
        "state of two steps before": ("h_n[...] = y[t] =", "h_n[...] = y[t - 1] if t else 0\n        y[t] ="),
        "first state is left out": ("given[-2:] if", "(0 * given[-2], given[-1]) if"),
        "first cell is left out": ("given[-2:] if", "(given[-2], 0 * given[-1]) if"),
        "cell is not bounded": ("np.tanh(c_n)", "np.clip(c_n, -1, 1)"),
        "sigmoid for the candidate": ("np.tanh(g)", "sigmoid(g)"),
        "sigmoid clamped": ("sigmoid(o)", "sigmoid(np.clip(o, -40, 13))"),
        "product of half precision": ("h_n @ w_hh.T", "(h_n.astype('f2') @ w_hh.T.astype('f2')).astype(h_n.dtype)"),
        "first weights of inputs for all": ("x[t] @ w_ih.T", "x[0] @ w_ih.T"),
        "last unit is forgotten": ("sigmoid(o) *", "(np.arange(attr.hidden) % 8 < 7) * sigmoid(o) *"),
    },
    "gru": {
        "gates in another order": ("(a_r, a_z, a_n)", "(a_z, a_r, a_n)"),
        "one bias alone": ("of_h + given[1]", "of_h"),
        "reset gate before the product": ("sigmoid(a_r + b_r) * b_n", "b_n"),
        "reset gate weighs both": ("a_n + sigmoid(a_r + b_r) * b_n", "sigmoid(a_r + b_r) * (a_n + b_n)"),
        "update gate of Paddle": ("n + z * (h_n - n)", "h_n + z * (n - h_n)"),
        "first state is left out": ("h_n[...] = given[-1]", "h_n[...] = 0 * given[-1]"),
        "state of the first step": ("if attr.initial or t", "if attr.initial or t > 1"),
        "sigmoid clamped": ("sigmoid(a_z + b_z)", "sigmoid(np.clip(a_z + b_z, -40, 13))"),
        "last state is the one before": ("h_n[...] = y[t] = n", "y[t] = n"),
    },
    "lstm_packed": {
        "gates in another order": ("gate * 16", "(0, 2, 1, 3)[gate] * 16"),
        "the second panel is the first": ("unit // 16", "unit // 32"),
        "lanes are reversed": ("unit % 16", "15 - unit % 16"),
        "weights are reversed": (":, gate", "::-1, gate"),
        "weights of inputs for the state": ("rows(attr, w_hh, 4)", "rows(attr, w_ih, 4)[:, :1].repeat(attr.hidden, 1)"),
    },
    "gru_packed": {
        "gates in another order": ("gate * 16", "(1, 0, 2)[gate] * 16"),
        "the second panel is the first": ("unit // 16", "unit // 32"),
        "lanes are reversed": ("unit % 16", "15 - unit % 16"),
    },
}  # fmt: skip


def gates(sums: AnyArray, count: int) -> list[AnyArray]:
    d = sums.shape[1] // count
    return [sums[:, i * d : (i + 1) * d] for i in range(count)]


def lstm(attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    *given, y, h_n, c_n = rest
    h_n[...], c_n[...] = given[-2:] if attr.initial else (0, 0)
    for t in range(attr.steps):
        sums = x[t] @ w_ih.T
        if attr.initial or t:
            sums = sums + h_n @ w_hh.T
        if attr.bias:
            sums = sums + (given[0] + given[1])
        i, f, g, o = gates(sums, 4)
        c_n[...] = sigmoid(f) * c_n + sigmoid(i) * np.tanh(g)
        h_n[...] = y[t] = sigmoid(o) * np.tanh(c_n)


def gru(attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    *given, y, h_n = rest
    h_n[...] = given[-1] if attr.initial else 0
    for t in range(attr.steps):
        of_x = x[t] @ w_ih.T
        of_h = h_n @ w_hh.T if attr.initial or t else np.zeros_like(of_x)
        if attr.bias:
            of_x, of_h = of_x + given[0], of_h + given[1]
        (a_r, a_z, a_n), (b_r, b_z, b_n) = gates(of_x, 3), gates(of_h, 3)
        z = sigmoid(a_z + b_z)
        n = np.tanh(a_n + sigmoid(a_r + b_r) * b_n)
        h_n[...] = y[t] = n + z * (h_n - n)


def lstm_packed(attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    def rows(attr: Any, panels: AnyArray, count: int) -> AnyArray:
        found = [panels[unit // 16, :, gate * 16 + unit % 16] for gate in range(count) for unit in range(attr.hidden)]
        return np.array(found, panels.dtype).reshape(count * attr.hidden, panels.shape[1])

    lstm(attr, x, rows(attr, w_ih, 4), rows(attr, w_hh, 4), *rest)


def gru_packed(attr: Any, x: AnyArray, w_ih: AnyArray, w_hh: AnyArray, *rest: AnyArray) -> None:
    def rows(attr: Any, panels: AnyArray, count: int) -> AnyArray:
        found = [panels[unit // 16, :, gate * 16 + unit % 16] for gate in range(count) for unit in range(attr.hidden)]
        return np.array(found, panels.dtype).reshape(count * attr.hidden, panels.shape[1])

    gru(attr, x, rows(attr, w_ih, 3), rows(attr, w_hh, 3), *rest)
