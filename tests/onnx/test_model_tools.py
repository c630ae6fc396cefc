"""Comparison with onnxruntime, models of other batches, layers for benchmarks, and the picture of a model."""

import importlib.util
import json
import xml.dom.minidom
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layered_model import IMAGE, command, network, saved
from onnx_cases import needs_onnx

import jitkernels.onnx
from jitkernels.attrs.convolution import Conv2DPackedAttr
from jitkernels.benchmarks.convolution_layers import in_words, layers_of, random_arrays
from jitkernels.benchmarks.entries import conv_layers
from jitkernels.benchmarks.networks.model_batch import with_batch
from jitkernels.benchmarks.networks.model_comparison import difference
from jitkernels.errors import ModelError

pytestmark = needs_onnx
NAN, INF = np.nan, np.inf


def reshaped(shape: Any, size: int = 1) -> Any:
    """A convolution of one image, twice, and a reshape of its result."""
    from onnx import TensorProto, helper, numpy_helper

    w = np.random.default_rng(0).standard_normal((4, 4, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Conv", ["r", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["s"]),
        helper.make_node("Reshape", ["s", "shape"], ["y"], name="last"),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [size, 4, 5, 5]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 100]),
    ]
    tensors = [numpy_helper.from_array(w, "w"), numpy_helper.from_array(np.array(shape), "shape")]
    graph = helper.make_graph(nodes, "reshaped", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.parametrize("shape", [[1, 100], [0, 100], [1, -1]])
def test_another_batch(shape: list[int]) -> None:
    x = np.random.default_rng(1).standard_normal((3, 4, 5, 5)).astype(np.float32)
    one, three = jitkernels.onnx.load(reshaped(shape)), jitkernels.onnx.load(with_batch(reshaped(shape), 3))
    assert three.get_inputs()[0].shape == (3, 4, 5, 5)
    np.testing.assert_allclose(three(x), np.concatenate([one(image[None]) for image in x]), rtol=1e-5, atol=1e-5)


def test_models_that_have_no_other_batch() -> None:
    with pytest.raises(ModelError, match="reshaped: Reshape 'last': expected a constant shape that begins with 1"):
        with_batch(reshaped([100]), 3)
    with pytest.raises(ModelError, match="reshaped: x: expected an input of one image"):
        with_batch(reshaped([1, 100], size=2), 3)


def test_layers_of_a_model() -> None:
    """They are the kernels that it calls, counted, and calls of them give what the reference gives."""
    known = layers_of(reshaped([1, 100]))
    assert {in_words(attr): count for attr, count in known.items()} == {"5x5x4 3x3 4, relu": 2}
    (attr,) = known
    (x, w, *addends), _ = random_arrays(attr)
    assert isinstance(attr, Conv2DPackedAttr)
    expected = attr.convolved(x, attr.pack(w)) + (addends[0] if attr.biased else 0)
    np.testing.assert_allclose(conv_layers._ours(attr)(), np.maximum(expected, 0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([1.0, 2.0], [1.0, 4.0], (2.0, 0.5)),
        ([NAN, INF, 0.0], [NAN, INF, 0.0], (0.0, 0.0)),
        ([NAN, 1.0], [1.0, 1.0], (INF, INF)),
        ([INF, 1.0], [-INF, 1.0], (INF, INF)),
        ([0.5], [0.0], (0.5, 0.5)),
        ([], [], (0.0, 0.0)),
        ([1, 5], [2, 5], (1.0, 0.2)),
        (["a"], ["b"], (INF, INF)),
        (["a"], ["a"], (0.0, 0.0)),
    ],
)
def test_differences(ours: Any, theirs: Any, expected: tuple[float, float]) -> None:
    assert difference("y", np.array(ours), np.array(theirs)) == pytest.approx(expected)


def test_differences_of_other_kinds() -> None:
    one = np.ones(2, np.float32)
    assert difference("y", [one, one], [one, 3 * one]) == pytest.approx((2, 2 / 3))
    with pytest.raises(ModelError, match=r"y: jitkernels gives float32\[2\], onnxruntime float64\[2\]"):
        difference("y", one, one.astype(np.float64))
    with pytest.raises(ModelError, match=r"y: jitkernels gives float32\[2\], onnxruntime float32\[2, 1\]"):
        difference("y", one, one[:, None])


def test_pictures_have_nodes_and_times() -> None:
    model = jitkernels.onnx.load(network(), profile=True)
    picture = xml.dom.minidom.parseString(str(model.drawing(np.ones(IMAGE, np.float32))))
    texts = [one.firstChild.data for one in picture.getElementsByTagName("text")]  # type: ignore[union-attr]
    (convolution,) = (text for text in texts if "kernel: Conv 'first'" in text)
    assert convolution.endswith(" us")
    assert any(text.startswith("NonZero 'third' in NumPy, ") for text in texts)
    untimed = str(jitkernels.onnx.load(network()).drawing(np.ones(IMAGE, np.float32)))
    assert " us<" not in untimed


def test_explain_shows_levels_and_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = command(capsys, "explain", saved(tmp_path), "--dim", "batch=2", "--svg", str(tmp_path / "model.svg"))
    assert "layers: 3 nodes (2 compiled, 1 NumPy)" in text
    assert "arena" in text
    assert "<svg" in (tmp_path / "model.svg").read_text()
    printed = command(capsys, "explain", "vmul", "n=8", "--svg", str(tmp_path / "kernel.svg"), code=2)
    assert "vmul: expected a function or the file of a model with --svg and --dim" in printed


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_compare(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path)
    words = ("compare", path, "--dim", "batch=2", "--seconds", "0.01", "--threads", "1")
    found = json.loads(command(capsys, *words, "--json"))
    assert set(found["contestants"]) == {"jitkernels", "onnxruntime"}
    assert all(value > 0 for figures in found["contestants"].values() for value in figures.values())
    assert found["differences"][0]["output"] == "y"
    assert found["differences"][0]["absolute"] == 0
    table = command(capsys, *words)
    assert "output y: differs by 0" in table
    assert "peak memory" in table


def test_dimensions_that_the_model_has_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = command(capsys, "run", saved(tmp_path), "--dim", "batch=2", "--dim", "size=3", code=2)
    assert "--dim size=3: expected one of the dimensions batch" in printed.replace("\n", " ")


def test_large_outputs_are_abbreviated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "y.npy"
    printed = command(capsys, "run", saved(tmp_path), "--dim", "batch=2", "--output", str(target))
    assert "..." in printed
    assert len(printed) < 1000 < np.load(target).size
