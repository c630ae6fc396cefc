"""The cells of an LSTM, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import identity, relu, sigmoid

MISTAKES = {
    "lstm_ctht": {
        "gates swapped": ("c, i, f, o =", "c, f, i, o ="),
        "no peephole of the output gate": ("o = o + w_o * new", "pass"),
        "peephole of the output gate sees the old cell": ("w_o * new", "w_o * ct_1"),
        "weights swapped": ("w_i, w_f, w_o =", "w_f, w_i, w_o ="),
        "relu drops NaN": ('"relu": relu', '"relu": lambda x: np.where(x > 0, x, x.dtype.type(0))'),
        "identity is relu": ('"identity": identity', '"identity": relu'),
        "sigmoid clamped": ('"sigmoid": sigmoid', '"sigmoid": lambda x: sigmoid(np.clip(x, -40, 13))'),
        "tanh of half precision": ('"tanh": np.tanh', '"tanh": lambda x: np.tanh(x.astype("f2")).astype(x.dtype)'),
        "cell activation is always tanh": ("act[attr.act_cell](new)", "np.tanh(new)"),
        "candidate goes through the gate": ("act[attr.act_cand](c)", "act[attr.act_gate](c)"),
        "hidden state of the old cell": ("act[attr.act_cell](new)", "act[attr.act_cell](ct_1)"),
        "reads what it has written": (
            "    if peephole:\n        w_i",
            "    ct[...] = c\n    if peephole:\n        w_i",
        ),
        "last element is forgotten": (
            "ht[...] = act[attr.act_cell](new) * act[attr.act_gate](o)",
            "ht[:-1] = (act[attr.act_cell](new) * act[attr.act_gate](o))[:-1]",
        ),
    },
    "lstm_c1h1": {
        "gates swapped": ("c, i, _, o =", "i, c, _, o ="),
        "output gate is the forget gate": ("c, i, _, o =", "c, i, o, _ ="),
        "forget gate in the cell": (
            "act[attr.act_gate](i)",
            "(act[attr.act_gate](i) + 0 * gates[2 * attr.d :][: attr.d])",
        ),
        "no peephole of the output gate": ("o = o + w_o * new", "pass"),
        "weights of another gate": ("_, _, w_o =", "_, w_o, _ ="),
        "sigmoid clamped": ('"sigmoid": sigmoid', '"sigmoid": lambda x: sigmoid(np.clip(x, -40, 13))'),
        "relu drops NaN": ('"relu": relu', '"relu": lambda x: np.where(x > 0, x, x.dtype.type(0))'),
        "cell activation is always tanh": ("act[attr.act_cell](new)", "np.tanh(new)"),
        "candidate goes through the gate": ("act[attr.act_cand](c)", "act[attr.act_gate](c)"),
        "last element is forgotten": ("ct[...] = new", "ct[:-1] = new[:-1]"),
    },
}


def lstm_ctht(attr: Any, gates: AnyArray, ct_1: AnyArray, *rest: AnyArray) -> None:
    *peephole, ct, ht = rest
    act: dict[str, Any] = {"sigmoid": sigmoid, "tanh": np.tanh, "relu": relu, "identity": identity}
    c, i, f, o = gates.reshape(4, attr.d)
    if peephole:
        w_i, w_f, w_o = peephole[0].reshape(3, attr.d)
        i = i + w_i * ct_1
        f = f + w_f * ct_1
    new = act[attr.act_cand](c) * act[attr.act_gate](i) + ct_1 * act[attr.act_gate](f)
    if peephole:
        o = o + w_o * new
    ct[...] = new
    ht[...] = act[attr.act_cell](new) * act[attr.act_gate](o)


def lstm_c1h1(attr: Any, gates: AnyArray, *rest: AnyArray) -> None:
    *peephole, ct, ht = rest
    act: dict[str, Any] = {"sigmoid": sigmoid, "tanh": np.tanh, "relu": relu, "identity": identity}
    c, i, _, o = gates.reshape(4, attr.d)
    new = act[attr.act_cand](c) * act[attr.act_gate](i)
    if peephole:
        _, _, w_o = peephole[0].reshape(3, attr.d)
        o = o + w_o * new
    ct[...] = new
    ht[...] = act[attr.act_cell](new) * act[attr.act_gate](o)
