"""Products with weights of 8 and 4 bits: MatMulNBits, and DequantizeLinear of constants before MatMul and Gemm."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx

import jitkernels.onnx

pytestmark = needs_onnx
INPUTS, OUTPUTS, BLOCK = 80, 24, 16
RNG = np.random.default_rng(0)


def model_of(nodes: list[Any], constants: Mapping[str, Any], dimensions: int) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    shape = [*("ab"[: dimensions - 1]), INPUTS]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*shape[:-1], OUTPUTS])],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return jitkernels.onnx.load(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def check(model: Any, weights: Any, dimensions: int, kernel: str, tolerance: float = 1e-5) -> None:
    """Compare with the product of dequantized weights [inputs, outputs], for one row and several."""
    for rows in (1, 6):
        x = RNG.standard_normal((2, rows, INPUTS)[3 - dimensions :]).astype(np.float32)
        wanted = x.astype(np.float64) @ weights
        np.testing.assert_allclose(model(x), wanted, rtol=0, atol=tolerance * np.abs(wanted).max())
    explained = model.explain(x)
    assert explained.levels.get("compiled", 0) >= 1
    assert f"kernel: jk.{kernel}" in str(explained), "the weights are not read as they are"


@pytest.mark.parametrize(
    ("block", "bits", "is_shifted", "accuracy"),
    [(16, 4, False, 0), (32, 4, True, 0), (16, 8, True, 0), (32, 8, False, 0), (32, 4, False, 4), (16, 8, False, 4)],
    ids=str,
)
def test_matmul_nbits(block: int, bits: int, is_shifted: bool, accuracy: int) -> None:
    """Blocks of 32 do not divide the inputs."""
    from onnx import helper

    groups, limit = -(-INPUTS // block), 1 << bits
    numbers = RNG.integers(0, limit, (OUTPUTS, groups, block))
    zeros = (
        RNG.integers(0, limit, (OUTPUTS, groups + groups % 2)) if is_shifted else np.full((OUTPUTS, groups), limit // 2)
    )
    scales = RNG.uniform(0.5, 2, (OUTPUTS, groups)).astype(np.float32)

    def packed(array: Any) -> Any:
        array = array.astype(np.uint8)
        return array if bits == 8 else array[..., 0::2] | array[..., 1::2] << 4

    constants = {"q": packed(numbers), "s": scales.reshape(-1)}
    if is_shifted:
        constants["z"] = packed(zeros if bits == 4 else zeros[:, :groups]).reshape(-1)
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=INPUTS, N=OUTPUTS, bits=bits,
        block_size=block, accuracy_level=accuracy,
    )  # fmt: skip
    weights = (numbers - zeros[:, :groups, None]) * scales[..., None].astype(np.float64)
    kernel = "matmul_int4" if bits == 4 else "matmul_int8_weights"
    tolerance = 2e-2 if accuracy == 4 else 1e-5
    check(model_of([node], constants, 3), weights.reshape(OUTPUTS, -1)[:, :INPUTS].T, 3, kernel, tolerance)


def test_zero_points_between_numbers() -> None:
    """They are floats: weights are dequantized while the model is compiled."""
    from onnx import helper

    groups = INPUTS // 16
    numbers = RNG.integers(0, 16, (OUTPUTS, groups, 16)).astype(np.uint8)
    scales, zeros = (RNG.uniform(0.5, 2, (OUTPUTS, groups)).astype(np.float32) for _ in range(2))
    constants = {"q": numbers[..., 0::2] | numbers[..., 1::2] << 4, "s": scales.reshape(-1), "z": zeros.reshape(-1)}
    node = helper.make_node(
        "MatMulNBits", ["x", *constants], ["y"], domain="com.microsoft", K=INPUTS, N=OUTPUTS, bits=4, block_size=16
    )
    weights = (numbers - zeros[..., None].astype(np.float64)) * scales[..., None]
    x = RNG.standard_normal((3, INPUTS)).astype(np.float32)
    wanted = x @ weights.reshape(OUTPUTS, -1).T
    np.testing.assert_allclose(model_of([node], constants, 2)(x), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("is_shifted", [False, True])
@pytest.mark.parametrize("kind", ["tensor", "column", "block"])
@pytest.mark.parametrize(
    ("op", "name"), [("MatMul", "int8"), ("Gemm", "uint8"), ("Gemm", "int4"), ("MatMul", "uint4")], ids=str
)
def test_dequantized_weights(op: str, name: str, kind: str, is_shifted: bool) -> None:
    import ml_dtypes
    from onnx import helper

    is_transposed = op == "Gemm"
    low, high = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}[name]
    dtype = np.dtype(getattr(ml_dtypes, name) if name.endswith("int4") else name)
    numbers = RNG.integers(low, high, (OUTPUTS, INPUTS))
    groups = {"tensor": (), "column": (OUTPUTS, 1), "block": (OUTPUTS, INPUTS // BLOCK)}[kind]
    scale, zero = RNG.uniform(0.5, 2, groups).astype(np.float32), RNG.integers(low, high, groups)
    factor: Any
    shift: Any
    factor, shift = (np.repeat(one, BLOCK, 1) if kind == "block" else one for one in (scale, zero))
    weights = (numbers - shift * is_shifted) * factor.astype(np.float64)
    bias = RNG.standard_normal(OUTPUTS).astype(np.float32)

    def declared(array: Any) -> Any:
        array = array.reshape(-1) if kind == "column" else array
        return array if is_transposed or array.ndim < 2 else array.T

    constants = {"w": (numbers if is_transposed else numbers.T).astype(dtype), "s": declared(scale)}
    if is_shifted:
        constants["z"] = declared(zero).astype(dtype)
    axis = {"tensor": {}, "column": {"axis": 0 if is_transposed else 1}}.get(
        kind, {"axis": 1 if is_transposed else 0, "block_size": BLOCK}
    )
    nodes = [helper.make_node("DequantizeLinear", [*constants], ["d"], **axis)]
    if is_transposed:
        nodes.append(helper.make_node("Gemm", ["x", "d", "b"], ["y"], transB=1))
    else:
        nodes += [helper.make_node("MatMul", ["x", "d"], ["p"]), helper.make_node("Add", ["p", "b"], ["y"])]
    model = model_of(nodes, {**constants, "b": bias}, 2)
    weights = np.vstack([weights.T, bias])
    kernel = "matmul_int4" if name.endswith("int4") else "matmul_int8_weights"
    for rows in (1, 6):
        x = RNG.standard_normal((rows, INPUTS)).astype(np.float32)
        wanted = np.hstack([x, np.ones((rows, 1))]) @ weights
        np.testing.assert_allclose(model(x), wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert f"kernel: jk.{kernel}" in str(model.explain(x)), "the weights are not read as they are"


def test_weights_scaled_along_inputs_are_dequantized() -> None:
    """Scales of rows of weights are no scales of columns."""
    from onnx import helper

    numbers = RNG.integers(-128, 128, (INPUTS, OUTPUTS)).astype(np.int8)
    scale = RNG.uniform(0.5, 2, INPUTS).astype(np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0),
        helper.make_node("MatMul", ["x", "d"], ["y"]),
    ]
    model = model_of(nodes, {"w": numbers, "s": scale}, 2)
    x = RNG.standard_normal((3, INPUTS)).astype(np.float32)
    wanted = x.astype(np.float64) @ (numbers * scale[:, None].astype(np.float64))
    np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-2)


def test_dynamic_quantization_of_three_dimensions() -> None:
    """Rows of all batches are one product of ints."""
    from onnx import helper

    numbers = RNG.integers(-128, 128, (INPUTS, OUTPUTS)).astype(np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=1),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    model = model_of(nodes, {"w": numbers}, 3)
    x = RNG.standard_normal((2, 5, INPUTS)).astype(np.float32)
    lowest = min(x.min(), np.float32(0))
    step = (max(x.max(), np.float32(0)) - lowest) / np.float32(255)
    zero = np.rint(-lowest / step)
    quantized = np.clip(np.rint(x / step) + zero, 0, 255) - zero
    wanted = quantized.astype(np.float64) @ numbers.astype(np.float64) * step
    np.testing.assert_allclose(model(x), wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    assert "kernel: jk.matmul_int8" in str(model.explain(x))
