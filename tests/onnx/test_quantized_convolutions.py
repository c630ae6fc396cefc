"""Convolutions of quantized models run by the kernel of 8-bit integers, with the values of the reference."""

from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx

import jitkernels.onnx

pytestmark = needs_onnx
RNG = np.random.default_rng(0)
SHAPE = [2, 8, 7, 9]


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Each test has numbers of its own: among others there are ties, which one rounding of a scale may break."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


def numbers(kind: str, shape: Any) -> Any:
    limits = np.iinfo(kind)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(kind)


def constants(kind: str = "uint8", filters: str = "int8", *, channels: bool = True, zero: Any = 0) -> dict[str, Any]:
    scale = RNG.uniform(0.002, 0.01, 6).astype(np.float32) if channels else np.float32(0.005)
    x_scale = np.float32(0.02)
    return {
        "xs": x_scale, "xz": numbers(kind, ()), "w": numbers(filters, (6, 8, 3, 3)), "ws": scale,
        "wz": np.full(np.shape(scale), zero, filters), "ys": np.float32(1.1), "yz": numbers(kind, ()),
        "b": RNG.integers(-5000, 5000, 6).astype(np.int32), "bs": x_scale * scale,
        "bz": np.zeros(np.shape(scale), np.int32), "floats": RNG.normal(size=6).astype(np.float32),
    }  # fmt: skip


def run(
    nodes: Any, given: dict[str, Any], kind: str, outputs: Any = ("y",), shape: Any = SHAPE, within: int = 0
) -> str:
    """Compare with the reference, integers exactly or within some steps, and return how the model runs."""
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    steps = [helper.make_node(op, inputs, [name], **attributes) for op, inputs, name, attributes in nodes]
    source = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape)
    results = [helper.make_empty_tensor_value_info(name) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in given.items()]
    graph = helper.make_graph(steps, "quantized", [source], results, tensors)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    x = numbers(kind, shape)
    expected = ReferenceEvaluator(proto).run(None, {"x": x})
    model = jitkernels.onnx.load(proto)
    for got, right in zip(model.run(None, {"x": x}), expected, strict=True):
        assert got.dtype == right.dtype
        if got.dtype == np.float32:
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-3)
        else:
            assert np.abs(got.astype(np.int64) - right.astype(np.int64)).max(initial=0) <= within
    return "".join(map(str, model.explain(x).functions))


QLINEAR = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
PADDED: dict[str, Any] = {"pads": [1, 2, 1, 0], "strides": [2, 1]}


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_qlinear_conv(kind: str, channels: bool, biased: bool) -> None:
    inputs = [*QLINEAR, "b"] if biased else QLINEAR
    text = run([("QLinearConv", inputs, "y", PADDED)], constants(kind, channels=channels), kind)
    assert text.count("jk.conv2d_int8_packed") == 1, text
    assert text.count("loop nest") == text.count("loop nest: copy") == 1, text  # of the channels of x


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("zero", [128, 7])
def test_filters_of_uint8(kind: str, zero: int) -> None:
    """Those around 128 are filters of int8; others need the sums of windows."""
    given = constants(kind, "uint8", channels=False, zero=zero)
    text = run([("QLinearConv", [*QLINEAR, "b"], "y", PADDED)], given, kind)
    assert text.count("kernel: jk.conv2d_int8") == (1 if zero == 128 else 2), text
    assert "matmul" not in text, text


@pytest.mark.parametrize("filters", ["int8", "uint8"])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_conv_integer(kind: str, filters: str) -> None:
    given = constants(kind, filters, channels=False, zero=9)
    for inputs in (["x", "w"], ["x", "w", "xz"], ["x", "w", "xz", "wz"]):
        text = run([("ConvInteger", inputs, "y", PADDED)], given, kind)
        assert "jk.conv2d_int8" in text, text
        assert "matmul" not in text, text


def test_groups_and_one_dimension() -> None:
    given = constants(channels=False)
    given |= {"w": numbers("int8", (6, 2, 3, 3)), "ws": np.float32(0.01)}
    assert "jk.conv2d_int8" in run([("QLinearConv", QLINEAR, "y", {"group": 4 // 2, "pads": [1] * 4})],
                                   given, "uint8", shape=[1, 4, 5, 6])  # fmt: skip
    given |= {"w": numbers("int8", (6, 4, 3))}
    assert "jk.conv2d_int8" in run([("QLinearConv", QLINEAR, "y", {"pads": [1, 1]})], given, "uint8", shape=[2, 4, 9])
    given |= {"w": numbers("uint8", (6, 2, 3)), "wz": np.uint8(5)}
    assert "jk.conv2d_int8" in run([("QLinearConv", QLINEAR, "y", {"group": 2})], given, "uint8", shape=[2, 4, 9])


DEQUANTIZED: list[Any] = [
    ("DequantizeLinear", ["x", "xs", "xz"], "xf", {}),
    ("DequantizeLinear", ["w", "ws", "wz"], "wf", {"axis": 0}),
    ("DequantizeLinear", ["b", "bs", "bz"], "bf", {"axis": 0}),
]
CONV = ("Conv", ["xf", "wf", "bf"], "c", {"pads": [1] * 4})


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_qdq_pairs_around_conv(kind: str, channels: bool) -> None:
    """The sums of floats may round another way, by which a few results differ by a step."""
    given = constants(kind, channels=channels)
    quantize: Any = ("QuantizeLinear", ["c", "ys", "yz"], "y", {})
    assert "kernel: jk.conv2d_int8" in run([*DEQUANTIZED, CONV, quantize], given, kind, within=1)
    relu: Any = [("Relu", ["c"], "r", {}), ("QuantizeLinear", ["r", "ys", "yz"], "y", {})]
    text = run([*DEQUANTIZED, CONV, *relu], given, kind, within=1)
    assert text.count("kernel: jk.conv2d_int8") == 1, text
    assert text.count("loop nest") == text.count("loop nest: copy") == 1, text  # of the channels of x


def test_floats_behind_conv() -> None:
    text = run([*DEQUANTIZED, CONV, ("Relu", ["c"], "y", {})], constants(), "uint8")
    assert "kernel: jk.conv2d_int8" in text, text
    assert text.count("loop nest") == text.count("loop nest: copy") == 1, text  # of the channels of x


KEPT: dict[str, tuple[list[Any], dict[str, Any], Any]] = {
    "a bias of floats": ([*DEQUANTIZED[:2], ("Conv", ["xf", "wf", "floats"], "c", {})], {}, ()),
    "a bias of another scale": ([*DEQUANTIZED, CONV], {"bs": np.float32(0.3), "bz": np.int32(0)}, ()),
    "a bias with a zero point": ([*DEQUANTIZED, CONV], {"bz": np.full(6, 3, np.int32)}, ()),
    "scales of channels of the image": (
        [("DequantizeLinear", ["x", "xs", "xz"], "xf", {}), *DEQUANTIZED[1:], CONV],
        {"xs": np.full(8, 0.02, np.float32), "xz": np.full(8, 3, np.uint8)},
        (),
    ),
    "scales along the channels of filters": (
        [DEQUANTIZED[0], ("DequantizeLinear", ["w", "cs", "cz"], "wf", {"axis": 1}), ("Conv", ["xf", "wf"], "c", {})],
        {"cs": np.full(8, 0.01, np.float32), "cz": np.zeros(8, np.int8)},
        (),
    ),
}
"""Convolutions that stay those of floats."""


@pytest.mark.parametrize("case", KEPT)
def test_convolutions_that_are_not_folded(case: str) -> None:
    nodes, changes, _ = KEPT[case]
    text = run([*nodes, ("QuantizeLinear", ["c", "ys", "yz"], "y", {})], constants() | changes, "uint8", within=1)
    assert "conv2d_int8" not in text, text


def test_results_with_other_readers() -> None:
    """What is read twice, or is a result, stays: the convolution of integers gives floats there."""
    nodes = [*DEQUANTIZED, CONV, ("QuantizeLinear", ["c", "ys", "yz"], "y", {}), ("Neg", ["c"], "z", {})]
    text = run(nodes, constants(), "uint8", ("y", "z"), within=1)
    assert text.count("kernel: jk.conv2d_int8") == 1, text
    nodes = [*DEQUANTIZED, CONV, ("Relu", ["c"], "r", {}), ("QuantizeLinear", ["r", "ys", "yz"], "y", {})]
    assert "kernel: jk.conv2d_int8" in run(nodes, constants(), "uint8", ("y", "c"), within=1)
    assert "kernel: jk.conv2d_int8" in run(nodes, constants(), "uint8", ("y", "r"), within=1)


def test_layers_between_stay_channels_last() -> None:
    """A block of a residual network: its sum is one pass over bytes, without transposing."""
    given = constants("uint8") | {"w": numbers("int8", (8, 8, 3, 3)), "ws": np.float32(0.003), "wz": np.int8(0)}
    nodes = [
        ("QLinearConv", QLINEAR, "a", {"pads": [1] * 4}),
        ("DequantizeLinear", ["a", "ys", "yz"], "af", {}),
        ("QLinearConv", ["a", "ys", "yz", "w", "ws", "wz", "ys", "yz"], "d", {"pads": [1] * 4}),
        ("DequantizeLinear", ["d", "ys", "yz"], "df", {}),
        ("Add", ["af", "df"], "s", {}),
        ("Relu", ["s"], "r", {}),
        ("QuantizeLinear", ["r", "ys", "yz"], "q", {}),
        ("QLinearConv", ["q", "ys", "yz", "w", "ws", "wz", "ys", "yz"], "y", {"pads": [1] * 4}),
    ]
    text = run(nodes, given, "uint8", within=1)  # scales are not multiplied in the reference's order
    assert text.count("kernel: jk.conv2d_int8") == 3, text
    assert "transpose" not in text, text
