"""`clip` of recurrent nodes, which bounds the input of each activation, as the text of ONNX says.

`onnx.reference` ignores it, and onnxruntime bounds sums of an LSTM without the bias and the peephole of some gates.
"""

from typing import Any

import numpy as np
import pytest
from onnx_cases import level_of, needs_onnx

import jitkernels as jk

pytestmark = needs_onnx
HIDDEN, INPUTS, BATCH, STEPS = 5, 4, 3, 6
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def expected(op: str, x: Any, kept: dict[str, Any], limit: float, *, reset_after: bool) -> Any:
    """The formulas of ONNX's text in float64, each activation behind the clip."""
    w, r = (kept[name][0].astype(np.float64) for name in "wr")
    bias = kept["b"][0].astype(np.float64) if "b" in kept else np.zeros(2 * len(w))
    of_input, of_state = bias[: len(w)], bias[len(w) :]
    peep = np.split(kept["p"][0], 3) if "p" in kept else np.zeros(3)
    h = c = np.zeros((BATCH, HIDDEN))

    def bounded(values: Any) -> Any:
        return np.clip(values, -limit, limit)

    results = []
    for row in x.astype(np.float64):
        left, right = row @ w.T + of_input, h @ r.T + of_state
        if op == "LSTM":
            i, o, f, new = np.split(left + right, 4, 1)
            forget, write = sigmoid(bounded(f + peep[2] * c)), sigmoid(bounded(i + peep[0] * c))
            c = forget * c + write * np.tanh(bounded(new))
            h = sigmoid(bounded(o + peep[1] * c)) * np.tanh(bounded(c))
        elif op == "GRU":
            z, reset = (sigmoid(bounded(one)) for one in np.split((left + right)[:, : 2 * HIDDEN], 2, 1))
            tail = slice(2 * HIDDEN, None)
            inner = reset * right[:, tail] if reset_after else (reset * h) @ r[tail].T + of_state[tail]
            h = (1 - z) * np.tanh(bounded(left[:, tail] + inner)) + z * h
        else:
            h = np.tanh(bounded(left + right))
        results.append(h)
    return np.array(results)[:, None]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("op", "more"), [("LSTM", ""), ("LSTM", "p"), ("GRU", ""), ("GRU", "after"), ("RNN", "")])
def test_clip(op: str, more: str, biased: bool) -> None:
    from onnx import TensorProto, helper, numpy_helper

    rng, rows = np.random.default_rng(0), GATES[op] * HIDDEN
    shapes = {"w": (1, rows, INPUTS), "r": (1, rows, HIDDEN), "b": (1, 2 * rows), "p": (1, 3 * HIDDEN)}
    names = ["w", "r", *(["b"] if biased else []), *(["p"] if more == "p" else [])]
    kept = {name: (2 * rng.standard_normal(shapes[name])).astype(np.float32) for name in names}
    inputs = ["x", "w", "r", "b" if biased else "", *(["", "", "", "p"] if more == "p" else [])]
    options = {"linear_before_reset": 1} if more == "after" else {}
    node = helper.make_node(op, inputs, ["y"], hidden_size=HIDDEN, clip=0.9, **options)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy")
    constants = [numpy_helper.from_array(array, name) for name, array in kept.items()]
    graph = helper.make_graph([node], "g", [x], [y], constants)
    model = jk.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8))
    values = rng.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)
    wanted = expected(op, values, kept, 0.9, reset_after=more == "after")
    np.testing.assert_allclose(model(values), wanted, rtol=1e-4, atol=1e-5)
    assert level_of(model) == "compiled"
