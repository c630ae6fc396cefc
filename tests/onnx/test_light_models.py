"""The nine networks of the package onnx: their expected outputs, and beside onnxruntime with random weights."""

import importlib.util
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx

import jitkernels.onnx
from jitkernels.benchmarks.networks.light_networks import NETWORKS, folder, randomized

pytestmark = needs_onnx
SMALL = ("shufflenet", "squeezenet")
LARGE = tuple(name for name in NETWORKS if name not in SMALL)


def dummy_input(model: Any) -> Any:
    """The input that ONNX's own runner passes."""
    (declared,) = model.get_inputs()
    count = int(np.prod(declared.shape))
    return (np.arange(count).reshape(declared.shape) / count).astype(np.float32)


def check(name: str) -> Any:
    from onnx import load_tensor, numpy_helper

    model = jitkernels.onnx.load(folder() / f"light_{name}.onnx")
    x = dummy_input(model)
    expected = numpy_helper.to_array(load_tensor(folder() / f"light_{name}_output_0.pb"))
    np.testing.assert_allclose(model(x), expected, rtol=1e-3, atol=1e-7)
    explained = model.explain(x)
    assert set(explained.levels) == {"compiled", "constant"}
    return explained


@pytest.mark.parametrize("name", SMALL)
def test_small_networks(name: str) -> None:
    check(name)


@pytest.mark.full
@pytest.mark.parametrize("name", LARGE)
def test_large_networks(name: str) -> None:
    check(name)


def test_layers_lie_with_channels_last() -> None:
    """No copy transposes an array between layers: only the input is."""
    text = str(check("squeezenet").functions[0])
    copies = [line for line in text.splitlines() if "loop nest: copy" in line]
    transposing = [line for line in copies if not ("writes reshape" in line or "writes concatenate" in line)]
    assert len(transposing) == 1, "\n".join(copies)
    assert "reads arrays[0]" in transposing[0]


@pytest.mark.parametrize("name", SMALL)
def test_batches_are_single_images(name: str) -> None:
    """One image after another runs through the layers, whatever the batch and the number of threads."""
    proto, single = randomized(name), jitkernels.onnx.load(randomized(name))
    known = {one.name for one in proto.graph.initializer}
    for one in (*proto.graph.input, *proto.graph.output):
        if one.name not in known and one.type.tensor_type.shape.dim:
            one.type.tensor_type.shape.dim[0].dim_param = "batch"
    del proto.graph.value_info[:]
    model = jitkernels.onnx.load(with_any_batch(proto))
    shape: Any = single.get_inputs()[0].shape
    threads = jitkernels.get_num_threads()
    x = np.random.default_rng(1).normal(size=(17, *shape[1:])).astype(np.float32)
    expected = np.concatenate([single(each[None]) for each in x])
    try:
        for batch, count in ((3, 1), (17, 2), (1, 2), (2, 2), (0, 1), (8, 3)):
            jitkernels.set_num_threads(count)
            np.testing.assert_allclose(model(x[:batch]), expected[:batch], rtol=1e-3, atol=1e-3)
    finally:
        jitkernels.set_num_threads(threads)
    assert any(" loop: " in line for line in str(model.explain(x).functions[-1]).splitlines())


def with_any_batch(proto: Any) -> Any:
    """The model with reshapes that keep the batch."""
    from onnx import numpy_helper

    known = {one.name: one for one in proto.graph.initializer}
    for i, node in enumerate(proto.graph.node):
        if node.op_type == "Reshape" and node.input[1] in known:
            sizes = numpy_helper.to_array(known[node.input[1]]).copy()
            sizes[0] = 0  # the extent of the operand
            proto.graph.initializer.append(numpy_helper.from_array(sizes, f"any batch {i}"))
            node.input[1] = proto.graph.initializer[-1].name
    return proto


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
@pytest.mark.parametrize("name", NETWORKS)
def test_random_weights_beside_onnxruntime(name: str) -> None:
    import onnxruntime

    proto = randomized(name)
    model = jitkernels.onnx.load(proto)
    shape: Any = model.get_inputs()[0].shape
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {model.get_inputs()[0].name: x})
    np.testing.assert_allclose(model(x), expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
