"""Small networks as ONNX models, one row or image at a time, where the time of a call is mostly that around its work.

Perceptrons of three layers, LeNet-5 (LeCun et al. 1998) with ReLU and maxima, an LSTM of 64 units over 10 steps, and a
tree of elementwise operations; weights are random.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

WIDTHS = (16, 32, 64, 128, 256)
NETWORKS = (*(f"mlp{width}" for width in WIDTHS), "lenet", "lstm", "tree")
LAYERS = 3
LSTM_UNITS, LSTM_STEPS = 64, 10
NETWORK_OPSET, NETWORK_IR_VERSION = 17, 8
TREE_ELEMENTS = 256
TREE_FUNCTIONS = ("Tanh", "Sigmoid", "Exp", "Abs", "Neg", "Relu", "Softplus", "Sin")
TREE_OPERATIONS = ("Add", "Mul", "Sub")


def network(name: str) -> Any:
    """A network by its name, as an onnx.ModelProto."""
    if name.startswith("mlp"):
        return _perceptron(int(name.removeprefix("mlp")))
    return {"lenet": _lenet, "lstm": _lstm, "tree": _tree}[name]()


def _perceptron(width: int) -> Any:
    from onnx import helper

    weights: dict[str, tuple[int, ...]] = {}
    nodes, current = [], "x"
    for i in range(LAYERS):
        weights |= {f"w{i}": (width, width), f"b{i}": (width,)}
        nodes.append(helper.make_node("Gemm", [current, f"w{i}", f"b{i}"], [f"g{i}"], transB=1))
        if i < LAYERS - 1:
            nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"]))
        current = f"r{i}"
    nodes.append(helper.make_node("Softmax", [f"g{LAYERS - 1}"], ["y"]))
    return _model(nodes, weights, (1, width), ("y", (1, width)))


def _lenet() -> Any:
    from onnx import helper

    def pooled(number: int, source: str) -> list[Any]:
        return [
            helper.make_node("Conv", [source, f"w{number}", f"b{number}"], [f"c{number}"]),
            helper.make_node("Relu", [f"c{number}"], [f"r{number}"]),
            helper.make_node("MaxPool", [f"r{number}"], [f"p{number}"], kernel_shape=[2, 2], strides=[2, 2]),
        ]

    nodes = [*pooled(0, "x"), *pooled(1, "p0"), helper.make_node("Flatten", ["p1"], ["r2"])]
    for i in (3, 4, 5):
        nodes.append(helper.make_node("Gemm", [f"r{i - 1}", f"w{i}", f"b{i}"], [f"g{i}"]))
        nodes.append(helper.make_node("Relu" if i < 5 else "Softmax", [f"g{i}"], [f"r{i}" if i < 5 else "y"]))
    weights = {"w0": (6, 1, 5, 5), "b0": (6,), "w1": (16, 6, 5, 5), "b1": (16,), "w3": (256, 120), "b3": (120,)}
    return _model(
        nodes, weights | {"w4": (120, 84), "b4": (84,), "w5": (84, 10), "b5": (10,)}, (1, 1, 28, 28), ("y", (1, 10))
    )


def _lstm() -> Any:
    from onnx import helper

    nodes = [helper.make_node("LSTM", ["x", "w", "r", "b"], ["all", "y"], hidden_size=LSTM_UNITS)]
    weights = {"w": (1, 4 * LSTM_UNITS, LSTM_UNITS), "r": (1, 4 * LSTM_UNITS, LSTM_UNITS), "b": (1, 8 * LSTM_UNITS)}
    return _model(nodes, weights, (LSTM_STEPS, 1, LSTM_UNITS), ("y", (1, 1, LSTM_UNITS)))


def _tree() -> Any:
    """Functions of one array, joined in pairs."""
    from onnx import helper

    nodes = [helper.make_node(function, ["x"], [f"{function} of x"]) for function in TREE_FUNCTIONS]
    level = [node.output[0] for node in nodes]
    while len(level) > 1:
        joined = []
        for left, right in zip(level[::2], level[1::2], strict=True):
            name = "y" if len(level) == 2 else f"join {len(nodes)}"
            nodes.append(helper.make_node(TREE_OPERATIONS[len(nodes) % len(TREE_OPERATIONS)], [left, right], [name]))
            joined.append(name)
        level = joined
    return _model(nodes, {}, (1, TREE_ELEMENTS), ("y", (1, TREE_ELEMENTS)))


def _model(
    nodes: Sequence[Any], weights: dict[str, tuple[int, ...]], x: tuple[int, ...], output: tuple[str, tuple[int, ...]]
) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    tensors = []
    for name, shape in weights.items():
        scale = np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 10
        tensors.append(numpy_helper.from_array((rng.standard_normal(shape) / scale).astype(np.float32), name))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", x), output)]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", NETWORK_OPSET)], ir_version=NETWORK_IR_VERSION
    )
