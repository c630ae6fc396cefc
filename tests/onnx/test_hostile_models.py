"""Models that are wrong or hostile: each is a ModelError, in bounded time and memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from test_models import made, perceptron

import jitkernels.onnx
from jitkernels.errors import ModelError

pytestmark = needs_onnx


def test_bytes_that_are_no_model() -> None:
    whole = perceptron().SerializeToString()
    with pytest.raises(ModelError, match="expected an ONNX model"):
        jitkernels.onnx.load(b"")
    with pytest.raises(ModelError, match="expected a path, bytes or a ModelProto"):
        jitkernels.onnx.load(3)
    rng = np.random.default_rng(0)
    for cut in (1, 10, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ModelError):
            jitkernels.onnx.load(whole[:cut])
    for _ in range(200):  # a changed byte may leave a valid model
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(whole)))] = int(rng.integers(256))
        try:
            model = jitkernels.onnx.load(bytes(damaged))
        except ModelError:
            continue
        assert model.graph.nodes is not None


def test_names_that_are_not_defined_or_defined_twice() -> None:
    from onnx import helper

    def load(*nodes: Any, outputs: Any = ("y",)) -> Any:
        return jitkernels.onnx.load(made(nodes, [("x", [2])], [(name, [2]) for name in outputs]))

    with pytest.raises(ModelError, match="reads 'z', which no node before it computes"):
        load(helper.make_node("Relu", ["z"], ["y"]))
    with pytest.raises(ModelError, match="reads 'b', which no node before it computes"):  # a cycle
        load(helper.make_node("Relu", ["b"], ["a"]), helper.make_node("Add", ["a", "x"], ["b"]), outputs=("b",))
    with pytest.raises(ModelError, match="which is defined already"):
        load(helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"]))
    with pytest.raises(ModelError, match="no node that computes its output 'q'"):
        load(helper.make_node("Relu", ["x"], ["y"]), outputs=("q",))


def test_numbers_of_inputs_and_outputs() -> None:
    """A convolution with four inputs, whose last one would be a residual, is none of ONNX's."""
    from onnx import helper

    def load(operator: str, inputs: int, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"y{number}" for number in range(outputs)]
        node = helper.make_node(operator, ["x"] * inputs, names, **attributes)
        return jitkernels.onnx.load(made([node], [("x", [1, 1, 3, 3])], [(name, None) for name in names]))

    with pytest.raises(ModelError, match="Conv: expected 2 to 3 inputs, got 4"):
        load("Conv", 4)
    with pytest.raises(ModelError, match="Conv: expected 2 to 3 inputs, got 1"):
        load("Conv", 1)
    with pytest.raises(ModelError, match="Relu: expected 1 inputs, got 2"):
        load("Relu", 2)
    with pytest.raises(ModelError, match="Relu: expected 1 outputs, got 2"):
        load("Relu", 1, 2)


def test_functions_that_call_themselves() -> None:
    from onnx import helper

    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    body = [helper.make_node("Loop2", ["a"], ["b"], domain="mine")]
    function = helper.make_function("mine", "Loop2", ["a"], ["b"], body, opsets)
    nodes = [helper.make_node("Loop2", ["x"], ["y"], domain="mine")]
    proto = made(nodes, [("x", [2])], [("y", [2])], functions=[function])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    with pytest.raises(ModelError, match="do they call themselves"):
        jitkernels.onnx.load(proto)


def test_a_bomb_of_functions() -> None:
    """Functions that call others ten times each."""
    from onnx import helper

    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    functions = []
    for level in range(12):
        name = f"F{level + 1}" if level < 11 else "Relu"
        domain = "mine" if level < 11 else ""
        names = ["a", *(f"t{i}" for i in range(9)), "b"]
        body = [helper.make_node(name, [names[i]], [names[i + 1]], domain=domain) for i in range(10)]
        functions.append(helper.make_function("mine", f"F{level}", ["a"], ["b"], body, opsets))
    proto = made([helper.make_node("F0", ["x"], ["y"], domain="mine")], [("x", [2])], [("y", [2])], functions=functions)
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    with pytest.raises(ModelError, match="more than 20000 nodes"):
        jitkernels.onnx.load(proto)


def test_tensors_whose_data_do_not_fit() -> None:
    from onnx import TensorProto

    def load(tensor: Any) -> Any:
        proto = perceptron()
        tensor.name = "w"
        proto.graph.initializer[0].CopyFrom(tensor)
        return jitkernels.onnx.load(proto)

    for dims, data in (([3, 5], b"\0" * 8), ([2**40, 2**40], b""), ([-1, 5], b""), ([1 << 33], b"")):
        with pytest.raises(ModelError, match="the tensor 'w'"):
            load(TensorProto(data_type=TensorProto.FLOAT, dims=dims, raw_data=data))
    with pytest.raises(ModelError, match="unknown type"):
        load(TensorProto(data_type=77, dims=[3, 5], raw_data=b""))
    with pytest.raises(ModelError, match="the tensor 'w'"):
        load(TensorProto(data_type=TensorProto.FLOAT, dims=[3, 5], float_data=[1.0]))


def external(location: str, **others: str) -> Any:
    """The model with a weight in a file."""
    from onnx import TensorProto

    proto = perceptron()
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3, 5], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **others}.items():
        tensor.external_data.add(key=key, value=value)
    proto.graph.initializer[0].CopyFrom(tensor)
    return proto


def test_data_in_other_files(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(b"\0" * 64 + weights.tobytes())
    secret = tmp_path / "secret.bin"
    secret.write_bytes(weights.tobytes())
    (folder / "link.bin").symlink_to(secret)
    path = folder / "model.onnx"

    def load(proto: Any) -> Any:
        path.write_bytes(proto.SerializeToString())
        return jitkernels.onnx.load(path)

    model = load(external("weights.bin", offset="64"))
    x = np.ones((2, 3), np.float32)
    expected = jitkernels.onnx.load(perceptron())(x)
    np.testing.assert_allclose(model(x), expected, rtol=1e-6)
    outside = ("../secret.bin", str(secret), "link.bin", "", "missing.bin", "a/../../secret.bin", "weights.bin\0")
    for location in outside:
        with pytest.raises(ModelError, match="external data in"):
            load(external(location))
    for others in ({"offset": "-4"}, {"offset": "100"}, {"length": "8"}, {"offset": "x"}):
        with pytest.raises(ModelError, match="the tensor 'w'"):
            load(external("weights.bin", **others))
    with pytest.raises(ModelError, match="load the model from its path"):
        jitkernels.onnx.load(external("weights.bin"))


def test_huge_arrays_that_a_model_computes() -> None:
    from onnx import helper

    def run(node: Any, *constants: Any) -> Any:
        proto = made([node], [("x", [2])], [("y", None)], constants)
        return jitkernels.onnx.load(proto)(np.ones(2, np.float32))

    huge = np.array([2**20, 2**20, 2])
    for node, constants in (
        (helper.make_node("ConstantOfShape", ["s"], ["y"]), [("s", huge)]),
        (helper.make_node("Expand", ["x", "s"], ["y"]), [("s", huge)]),
        (helper.make_node("Tile", ["x", "s"], ["y"]), [("s", np.array([2**60]))]),
        (helper.make_node("Pad", ["x", "s"], ["y"]), [("s", np.array([0, 2**50]))]),
        (helper.make_node("ConstantOfShape", ["s"], ["y"]), [("s", np.array([-3]))]),
    ):
        with pytest.raises(ModelError):
            run(node, *constants)


def test_wrong_shapes_name_the_node() -> None:
    from onnx import helper

    proto = made(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [("x", ["n", "m"])],
        [("y", None)],
        [("w", np.ones((3, 4), np.float32))],
    )
    model = jitkernels.onnx.load(proto)
    with pytest.raises(ModelError, match="MatMul 'product'"):
        model(np.ones((2, 5), np.float32))
    assert model(np.ones((2, 3), np.float32)).shape == (2, 4)
