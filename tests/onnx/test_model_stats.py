"""`Model.stats` and the commands that show it: layers with their nodes, operations, bytes, and times with a profile."""

import json
from pathlib import Path

import numpy as np
import pytest
from layered_model import IMAGE, command, network, saved
from onnx_cases import needs_onnx

import jitkernels.onnx
from jitkernels.errors import ArgumentError
from jitkernels.onnx.model_interface import ValueType
from jitkernels.onnx.random_inputs import random_inputs

pytestmark = needs_onnx


def test_layers_have_their_nodes_and_work() -> None:
    model = jitkernels.onnx.load(network(), profile=True)
    x = np.ones(IMAGE, np.float32)
    for _ in range(3):
        model(x)
    stats = model.stats()
    by_node = {layer.nodes: layer for layer in stats.layers if "conv2d" in layer.kernel or layer.level != "compiled"}
    convolution, numpy_node = by_node["Conv 'first'",], by_node["NonZero 'third'",]
    assert numpy_node.level == "NumPy"
    elements = 2 * 9 * 9 * 4
    assert convolution.operations == elements * (2 * 27 + 1)
    packed = 27 * 32 * 4  # filters of a panel of 32
    assert convolution.constant_bytes == packed
    assert stats.constant_bytes >= packed
    assert any(layer.nodes == ("Exp 'second'",) and layer.operations == elements for layer in stats.layers)
    assert all(layer.seconds is not None and layer.seconds > 0 for layer in stats.layers)
    assert stats.seconds == pytest.approx(sum(layer.seconds or 0 for layer in stats.layers))
    assert sum(layer.share or 0 for layer in stats.layers) == pytest.approx(1)
    rate, share = convolution.operations_per_second, convolution.share_of_peak
    assert rate is not None
    assert share == pytest.approx(rate / stats.peaks["float32"])
    assert "Conv 'first'" in str(stats)
    assert json.loads(json.dumps(stats.as_json()))["arena_bytes"] == stats.arena_bytes


def test_rewritten_operands_keep_the_nodes_of_their_readers() -> None:
    """The negations cancel, so that the kernel and what follows are rebuilt on other operands."""
    from onnx import helper

    proto = network()
    nodes = [helper.make_node("Neg", ["x"], ["n"]), helper.make_node("Neg", ["n"], ["x again"]), *proto.graph.node]
    nodes[2].input[0] = "x again"
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    model = jitkernels.onnx.load(proto)
    model(np.ones(IMAGE, np.float32))
    by_kernel = {layer.kernel.split(" ")[0]: layer.nodes for layer in model.stats().layers}
    assert by_kernel["conv2d_packed"] == ("Conv 'first'",)
    assert any(layer.nodes == ("Exp 'second'",) for layer in model.stats().layers)


def test_the_fastest_call_counts() -> None:
    """The time of a layer does not grow with calls, as a sum or a mean with a slow first call would."""
    model = jitkernels.onnx.load(network(), profile=True)
    x = np.ones(IMAGE, np.float32)
    found = []
    for _ in range(2):
        for _ in range(50):
            model(x)
        found.append([layer.seconds for layer in model.stats().layers])
    assert all(later <= earlier for earlier, later in zip(*found, strict=True))


def test_without_a_profile_work_is_known_but_no_time() -> None:
    model = jitkernels.onnx.load(network())
    assert model.stats().layers == ()
    model(np.ones(IMAGE, np.float32))
    stats = model.stats()
    assert stats.seconds is None
    assert all(layer.seconds is None for layer in stats.layers)
    assert any(layer.operations for layer in stats.layers)


def test_random_inputs() -> None:
    declared = [
        ValueType("x", "tensor(float)", ("batch", None, 3), "float32"),
        ValueType("i", "tensor(int64)", (5,), "int64"),
        ValueType("b", "tensor(bool)", (), "bool"),
    ]
    first = random_inputs(declared, {"batch": 2, "x.1": 4})
    assert {name: (array.shape, array.dtype.name) for name, array in first.items()} == {
        "x": ((2, 4, 3), "float32"), "i": ((5,), "int64"), "b": ((), "bool"),
    }  # fmt: skip
    again = random_inputs(declared, {"batch": 2, "x.1": 4})
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert set(np.unique(first["i"])) <= {0, 1}
    with pytest.raises(ArgumentError, match=r"expected a size of the dimension 'x\.1'"):
        random_inputs(declared, {"batch": 2})
    with pytest.raises(ArgumentError, match="expected at most"):
        random_inputs(declared, {"batch": 10**12, "x.1": 4})
    with pytest.raises(ArgumentError, match="no random ones of its type"):
        random_inputs([ValueType("s", "tensor(string)", (1,), "object")], {})


def test_run_shows_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, x = saved(tmp_path), np.ones(IMAGE, np.float32)
    np.save(tmp_path / "x.npy", x)
    table = command(capsys, "run", path, "--input", f"x={tmp_path / 'x.npy'}", "--profile")
    assert "Conv 'first'" in table
    assert "GFLOP/s" in table
    assert "x float32[2, 3, 9, 9]" in table
    found = json.loads(command(capsys, "run", path, "--dim", "batch=3", "--profile", "--json"))
    assert found["layers"][-1]["level"] == "NumPy"
    assert "y: tensor(int64)" in command(capsys, "run", path, "--dim", "batch=1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected a size of the dimension 'batch', such as batch=1"),
        (("--dim", "batch"), "--dim batch: expected a size of a symbolic dimension"),
        (("--dim", "batch=1", "--json"), "--json: expected --profile beside it"),
        (("--input", "z=x.npy"), "--input z=x.npy: expected one of the inputs x, got 'z'"),
        (("--input", "x=none.npy"), "none.npy: expected a file written by numpy.save"),
    ],
)
def test_wrong_words_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    printed = command(capsys, "run", saved(tmp_path), *words, code=2)
    assert message in printed
    assert len(printed.splitlines()) == 1
