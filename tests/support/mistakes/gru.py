"""The cells of a GRU, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import identity, relu, sigmoid

ACT: dict[str, Any] = {"sigmoid": sigmoid, "tanh": np.tanh, "relu": relu, "identity": identity}

MISTAKES = {
    "gru_h1": {
        "gates swapped": ("u, _, s =", "s, _, u ="),
        "reset gate for the update gate": ("u, _, s =", "_, u, s ="),
        "candidate goes through the gate": ("ACT[attr.act_cand]", "ACT[attr.act_gate]"),
        "the other weight": ("ACT[attr.act_gate](u) *", "(1 - ACT[attr.act_gate](u)) *"),
        "sigmoid clamped": ("ACT[attr.act_gate](u)", "ACT[attr.act_gate](np.clip(u, -40, 13))"),
    },
    "gru_ht_part1": {
        "update gate for the reset gate": ("_, r, _ =", "r, _, _ ="),
        "gate is always a sigmoid": ("ACT[attr.act_gate](r)", "sigmoid(r)"),
        "state is not weighted": ("* ht_1", "* (ht_1 * 0 + 1)"),
        "sigmoid clamped": ("ACT[attr.act_gate](r)", "ACT[attr.act_gate](np.clip(r, -40, 13))"),
        "adds to what was there": ("ht[...] = ", "ht[...] += "),
    },
    "gru_ht_part2": {
        "gates swapped": ("u, _, s =", "s, _, u ="),
        "reset gate for the update gate": ("u, _, s =", "_, u, s ="),
        "the update gate weighs the state before": (
            "update * candidate + (1 - update) * ht_1",
            "update * ht_1 + (1 - update) * candidate",
        ),
        "difference that cancels": (
            "update * candidate + (1 - update) * ht_1",
            "ht_1 - update * ht_1 + (candidate - ht_1 + ht_1) * update",
        ),
        "weights do not add up to 1": ("(1 - update) * ht_1", "ht_1"),
        "candidate goes through the gate": ("ACT[attr.act_cand](s)", "ACT[attr.act_gate](s)"),
        "reads what it has written": ("    update =", "    ht[...] = 0\n    update ="),
        "sigmoid clamped": ("ACT[attr.act_gate](u)", "ACT[attr.act_gate](np.clip(u, -40, 13))"),
    },
}


def gru_h1(attr: Any, gates: AnyArray, ht: AnyArray) -> None:
    u, _, s = gates.reshape(3, attr.d)
    ht[...] = ACT[attr.act_gate](u) * ACT[attr.act_cand](s)


def gru_ht_part1(attr: Any, gates: AnyArray, ht_1: AnyArray, ht: AnyArray) -> None:
    _, r, _ = gates.reshape(3, attr.d)
    ht[...] = ACT[attr.act_gate](r) * ht_1


def gru_ht_part2(attr: Any, gates: AnyArray, ht_1: AnyArray, ht: AnyArray) -> None:
    u, _, s = gates.reshape(3, attr.d)
    update = ACT[attr.act_gate](u)
    candidate = ACT[attr.act_cand](s)
    ht[...] = update * candidate + (1 - update) * ht_1
