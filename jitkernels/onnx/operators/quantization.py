"""Quantized tensors: to ints and back, and products of them."""

from typing import Any

import numpy as np

from jitkernels.onnx.element_types import dtype_of
from jitkernels.onnx.narrow_types import FLOATS, INTS, narrowed, widened
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators.cast import to_dtype
from jitkernels.onnx.operators.product import integer_matmul
from jitkernels.onnx.values import NotServedError, axis_of, like


def along(values: Any, x: Any, axis: int, block: int = 0) -> Any:
    """A scale or zero point in a shape that broadcasts to an array: of all, of an axis, or of blocks along it."""
    if values is None or getattr(values, "ndim", 0) == 0:
        return values
    axis = axis_of(axis, x.ndim) if values.shape != (1,) or block else 0
    if block:
        spread = np.repeat(values, block, axis=axis)
        return spread[(*(slice(None),) * axis, slice(0, x.shape[axis]))]
    if values.shape == (1,):
        return np.reshape(values, (1,) * x.ndim) if x.ndim else values
    return np.reshape(values, (-1, *(1,) * (x.ndim - axis - 1)))


@operator("QuantizeLinear", narrow=True)
def quantize(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, node: Any = None) -> Any:
    """``rint(x / scale) + zero`` in ints, clamped to their range; the nearest float in narrow floats."""
    number = node.attributes.get("output_dtype", 0)
    dtype = zero.dtype if zero is not None else dtype_of(number) if number else np.dtype("uint8")
    x, scale, zero = widened(x), widened(scale), None if zero is None else widened(zero)
    precision = node.attributes.get("precision", 0)
    wide = x.astype(dtype_of(precision)) if precision else x.astype(np.float32) if x.dtype != np.float64 else x
    scale, zero = (along(one, x, axis, block_size) for one in (scale, zero))
    if dtype.name in FLOATS:
        ratio = wide / scale.astype(wide.dtype)
        return narrowed(ratio, dtype, saturate=bool(node.attributes.get("saturate", 1)))
    return quantized(wide, scale, zero, dtype)


def quantized(x: Any, scale: Any, zero: Any, dtype: Any) -> Any:
    """The same in ints, with scale and zero point that broadcast."""
    dtype = np.dtype(dtype)
    low, high = _limits(dtype)
    steps = np.rint(x / scale.astype(x.dtype))
    if zero is not None:
        steps = steps + zero.astype(x.dtype)
    whole = np.minimum(np.maximum(steps, like(low, x)), like(high, x)).astype(np.int32)
    return narrowed(whole, dtype) if dtype.name in INTS else whole.astype(dtype)


def _limits(dtype: Any) -> tuple[int, int]:
    if dtype.name in INTS:
        width, signed = INTS[dtype.name]
        return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


@operator("DequantizeLinear")
def dequantize(x: Any, scale: Any, zero: Any = None, *, axis: int = 1, block_size: int = 0, node: Any = None) -> Any:
    number = node.attributes.get("output_dtype", 0)
    steps = x.astype(np.float32)
    if zero is not None:
        steps = steps - along(zero, x, axis, block_size).astype(np.float32)
    result = steps * along(scale, x, axis, block_size).astype(np.float32)
    return to_dtype(result, dtype_of(number)) if number else result.astype(scale.dtype)


@operator("DynamicQuantizeLinear")
def dynamic_quantize(x: Any) -> Any:
    """An array in uint8, with the scale and zero point that its range gives."""
    low, high = np.minimum(np.min(x), like(0, x)), np.maximum(np.max(x), like(0, x))
    scale = (high - low) / like(255, x)
    scale = np.where(scale == 0, like(1, x), scale)
    zero = np.minimum(np.maximum(np.rint(-low / scale), like(0, x)), like(255, x))
    steps = np.minimum(np.maximum(np.rint(x / scale) + zero, like(0, x)), like(255, x))
    return steps.astype(np.uint8), scale, zero.astype(np.uint8)


@operator("QLinearMatMul")
def quantized_matmul(
    a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, *rest: Any,
) -> Any:  # fmt: skip
    scale, zero = rest
    if not {a.dtype.name, b.dtype.name} <= {"int8", "uint8"}:
        raise NotServedError("elements that NumPy lacks")
    product = integer_matmul(a, b, a_zero, b_zero).astype(np.float32)
    left = along(a_scale, a, a.ndim - 2) if getattr(a_scale, "ndim", 0) == 1 else a_scale
    factor = left.astype(np.float32) * b_scale.astype(np.float32) / scale.astype(np.float32)
    return quantized(product * factor, np.float32(1), zero, zero.dtype)
