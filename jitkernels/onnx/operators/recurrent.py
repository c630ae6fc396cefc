"""Recurrent networks: the kernels LSTM and GRU where they compute the same, and loops over the steps elsewhere."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.compiler.ir import special_functions
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators import activation
from jitkernels.onnx.values import created, is_traced, like, settled

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
PLAIN: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "sigmoid": special_functions.sigmoid,
    "relu": activation.relu,
    "softsign": activation.softsign,
    "softplus": activation.softplus,
}


class Cell:
    """The attributes of a recurrent node: activations of a direction, clipping, and others."""

    def __init__(self, node: Any) -> None:
        self.kind, attributes = node.op, node.attributes
        self.hidden, self.layout = attributes.get("hidden_size"), attributes.get("layout", 0)
        self.direction = attributes.get("direction", "forward")
        self.clip, self.input_forget = attributes.get("clip"), attributes.get("input_forget", 0)
        self.reset_after = attributes.get("linear_before_reset", 0)
        self.names = [one.lower() for one in attributes.get("activations") or DEFAULTS[self.kind] * 2]
        self._alphas, self._betas = attributes.get("activation_alpha") or [], attributes.get("activation_beta") or []

    @property
    def directions(self) -> tuple[bool, ...]:
        """For each direction whether it runs backwards."""
        return {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]

    def functions(self, direction: int) -> list[Callable[[Any], Any]]:
        """The activations of a direction, behind clipping."""
        count = len(DEFAULTS[self.kind])
        return [self._clipped(self._function(i)) for i in range(direction * count, (direction + 1) * count)]

    def is_usual(self, direction: int) -> bool:
        """Whether a direction computes what the kernels do."""
        usual = [one.lower() for one in DEFAULTS[self.kind]]
        count = len(usual)
        return (
            self.names[direction * count : (direction + 1) * count] == usual
            and self.clip is None
            and not self.input_forget
        )

    def _function(self, i: int) -> Callable[[Any], Any]:
        name = self.names[i % len(self.names)]
        if name in PLAIN:
            return PLAIN[name]
        alpha = self._alphas[i] if i < len(self._alphas) else None
        beta = self._betas[i] if i < len(self._betas) else None
        given = {} if alpha is None else {"alpha": alpha}
        if name == "affine":
            return lambda x: x * like(1 if alpha is None else alpha, x) + like(beta or 0, x)
        if name == "scaledtanh":
            return lambda x: like(1 if alpha is None else alpha, x) * np.tanh(x * like(1 if beta is None else beta, x))
        if name == "hardsigmoid":
            return lambda x: activation.hard_sigmoid(x, **given, **({} if beta is None else {"beta": beta}))
        table = {
            "leakyrelu": activation.leaky_relu, "elu": activation.elu, "thresholdedrelu": activation.thresholded_relu,
        }  # fmt: skip
        return lambda x: table[name](x, **given)

    def _clipped(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        limit = self.clip
        if limit is None:
            return function
        return lambda x: function(np.minimum(np.maximum(x, like(-limit, x)), like(limit, x)))


def _rnn(cell: Cell, functions: Sequence[Any], weights: Any, recurrent: Any, bias: Any) -> Any:
    (activate,) = functions
    hidden = recurrent.shape[-1]
    terms = None if bias is None else bias[:hidden] + bias[hidden:]

    def step(x: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        total = x @ weights.T + state[0] @ recurrent.T
        return (activate(total if terms is None else total + terms),)

    return step


def _gru(cell: Cell, functions: Sequence[Any], weights: Any, recurrent: Any, bias: Any) -> Any:
    gate, candidate = functions
    n = recurrent.shape[-1]
    own, of_state = (None, None) if bias is None else (bias[: 3 * n], bias[3 * n :])

    def step(x: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        (h,) = state
        a = x @ weights.T if own is None else x @ weights.T + own
        b = h @ recurrent[: 2 * n].T if of_state is None else h @ recurrent[: 2 * n].T + of_state[: 2 * n]
        z, r = gate(a[:, :n] + b[:, :n]), gate(a[:, n : 2 * n] + b[:, n:])
        if cell.reset_after:
            inner = h @ recurrent[2 * n :].T if of_state is None else h @ recurrent[2 * n :].T + of_state[2 * n :]
            inner = r * inner
        else:
            inner = (r * h) @ recurrent[2 * n :].T
            inner = inner if of_state is None else inner + of_state[2 * n :]
        new = candidate(a[:, 2 * n :] + inner)
        return (z * h + (like(1, z) - z) * new,)

    return step


def _lstm(cell: Cell, functions: Sequence[Any], weights: Any, recurrent: Any, bias: Any, peepholes: Any = None) -> Any:
    gate, candidate, shown = functions
    n = recurrent.shape[-1]
    terms = None if bias is None else bias[: 4 * n] + bias[4 * n :]

    def step(x: Any, state: tuple[Any, ...]) -> tuple[Any, ...]:
        h, c = state
        total = x @ weights.T + h @ recurrent.T
        total = total if terms is None else total + terms
        i, o, f, g = (total[:, k * n : (k + 1) * n] for k in range(4))
        if peepholes is not None:
            i, f = i + peepholes[:n] * c, f + peepholes[2 * n :] * c
        i = gate(i)
        f = like(1, i) - i if cell.input_forget else gate(f)
        c = f * c + i * candidate(g)
        if peepholes is not None:
            o = o + peepholes[n : 2 * n] * c
        return gate(o) * shown(c), c

    return step


STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


@operator("RNN", "GRU", "LSTM")
def recurrent(x: Any, weights: Any, recurrence: Any, *rest: Any, node: Any = None) -> Any:
    """All directions of a layer: the states of each step, and the last ones."""
    bias, lengths, h0, c0, peepholes = (*rest, *(None,) * 5)[:5]
    cell = Cell(node)
    if cell.layout:
        x = np.transpose(x, (1, 0, 2))
        h0, c0 = (None if one is None else np.transpose(one, (1, 0, 2)) for one in (h0, c0))
    outputs, lasts = [], []
    for i, backwards in enumerate(cell.directions):
        parts = [None if one is None else one[i] for one in (weights, recurrence, bias, h0, c0, peepholes)]
        states, last = _direction(cell, i, backwards, x, lengths, parts)
        outputs.append(states)
        lasts.append(last)
    y = np.stack(outputs, axis=1)
    finals = [np.stack([one[k] for one in lasts]) for k in range(len(lasts[0]))]
    if cell.layout:
        y = np.transpose(y, (2, 0, 1, 3))
        finals = [np.transpose(one, (1, 0, 2)) for one in finals]
    return (y, *finals)


def _direction(
    cell: Cell, direction: int, backwards: bool, x: Any, lengths: Any, parts: Sequence[Any]
) -> tuple[Any, tuple[Any, ...]]:
    """The states of all steps of one direction, and the last state."""
    weights, recurrence, bias, h0, c0, peepholes = parts
    if is_traced(x) and lengths is None and peepholes is None and cell.is_usual(direction):
        found: tuple[Any, tuple[Any, ...]] | None = _by_kernel(cell, backwards, x, (weights, recurrence, bias, h0, c0))
        if found is not None:
            return found
    batch, hidden = x.shape[1], recurrence.shape[-1]
    arguments = (cell, cell.functions(direction), weights, recurrence, bias)
    step = _lstm(*arguments, peepholes) if cell.kind == "LSTM" else STEPS[cell.kind](*arguments)
    zeros = created(np.zeros, (batch, hidden), x.dtype)
    state: tuple[Any, ...] = (zeros if h0 is None else h0,)
    if cell.kind == "LSTM":
        state = (*state, zeros if c0 is None else c0)
    places = range(int(x.shape[0]))
    states = []
    for t in reversed(places) if backwards else places:
        new = step(x[t], state)
        if lengths is not None:
            inside = (lengths > t)[:, None]
            kept = [np.where(inside, one, old) for one, old in zip(new, state, strict=True)]
            states.append(np.where(inside, new[0], like(0, x)))
            state = tuple(kept)
        else:
            state = new
            states.append(new[0])
    return np.stack(states[::-1] if backwards else states), state


def _by_kernel(cell: Cell, backwards: bool, x: Any, parts: Sequence[Any]) -> Any:
    """The kernels LSTM and GRU, whose gates lie in torch's order; None where they compute something else."""
    weights, recurrence, bias, h0, c0 = parts
    n = int(recurrence.shape[-1])
    order: tuple[int, ...]
    if cell.kind == "LSTM":
        order = (0, 2, 3, 1)  # of i, o, f, c
    elif cell.kind == "GRU" and cell.reset_after:
        order = (1, 0, 2)  # of z, r, h
    else:
        return None

    def sorted_gates(rows: Any) -> Any:
        return settled(np.concatenate([rows[k * n : (k + 1) * n] for k in order]))

    gates = len(order) * n
    b_ih, b_hh = (None, None) if bias is None else (sorted_gates(bias[:gates]), sorted_gates(bias[gates:]))
    zeros = created(np.zeros, (x.shape[1], n), x.dtype) if (h0 is None) != (c0 is None) else None
    x = np.flip(x, 0) if backwards else x
    w_ih, w_hh = sorted_gates(weights), sorted_gates(recurrence)
    if cell.kind == "LSTM":
        h0, c0 = (zeros if one is None else one for one in (h0, c0))
        states, *last = jk.lstm(x, w_ih, w_hh, b_ih, b_hh, h0=h0, c0=c0)
    else:
        states, *last = jk.gru(x, w_ih, w_hh, b_ih, b_hh, h0=h0)
    return (np.flip(states, 0) if backwards else states), tuple(last)
