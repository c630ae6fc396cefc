"""Arithmetic, comparisons and elementary functions of single elements."""

import functools
from typing import Any

import numpy as np

from jitkernels.compiler.ir import special_functions
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import is_sizes, like

UNARY = {
    "Abs": np.absolute, "Exp": np.exp, "Log": np.log, "Sqrt": np.sqrt, "Floor": np.floor, "Ceil": np.ceil,
    "Round": np.rint, "Sin": np.sin, "Cos": np.cos, "Tan": np.tan, "Asin": np.arcsin, "Acos": np.arccos,
    "Atan": np.arctan, "Sinh": np.sinh, "Cosh": np.cosh, "Tanh": np.tanh, "Asinh": np.arcsinh, "Acosh": np.arccosh,
    "Atanh": np.arctanh, "Not": np.logical_not, "BitwiseNot": np.invert, "IsNaN": np.isnan,
    "Erf": special_functions.erf, "Sigmoid": special_functions.sigmoid,
}  # fmt: skip
COMPARISONS = {
    "Equal": np.equal, "Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal, "And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor,
    "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor,
}  # fmt: skip
ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}
SIZES = ("Equal", *ARITHMETIC)
"""Operations that sizes go through while they stay symbolic."""
SINCE = 7
"""The opset from which operands broadcast as NumPy's do."""


def _same_dtype(function: Any) -> Any:
    """An operation whose results have the dtype of its first operand, as that of bfloat16 must."""

    def compute(x: Any) -> Any:
        result = function(x)
        return result if result.dtype == x.dtype or result.dtype == bool else result.astype(x.dtype)

    return compute


def _aligned(y: Any, dimensions: int, axis: int | None) -> Any:
    """The second operand of an old opset, whose first dimension belongs to `axis` of the first operand."""
    if axis is None or not y.ndim:
        return y
    begin = axis % dimensions
    return np.reshape(y, (*y.shape, *(1,) * (dimensions - begin - y.ndim)))


def _binary(function: Any) -> Any:
    return lambda x, y: function(x, y)


def _of_old(function: Any) -> Any:
    def compute(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
        return function(x, _aligned(y, x.ndim, axis) if broadcast else y)

    return compute


for _name, _function in UNARY.items():
    operator(_name)(_same_dtype(_function))
for _name, _function in {**COMPARISONS, **ARITHMETIC}.items():
    operator(_name, since=SINCE, sizes=_name in SIZES)(_binary(_function))
    operator(_name)(_of_old(_function))


@operator("Identity", sizes=True, narrow=True)
def identity(x: Any) -> Any:
    return x


@operator("Neg", sizes=True)
def negate(x: Any) -> Any:
    return -x


@operator("Reciprocal")
def reciprocal(x: Any) -> Any:
    return like(1, x) / x


@operator("Sign")
def sign(x: Any) -> Any:
    return np.sign(x)


@operator("IsInf")
def is_inf(x: Any, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    infinite = np.isinf(x)
    if not detect_negative:
        infinite = infinite & (x > 0)
    return infinite if detect_positive else infinite & (x < 0)


@operator("Div", sizes=True)
def divide(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
    """A quotient; that of ints is truncated towards zero."""
    y = _aligned(y, x.ndim, axis) if broadcast else y
    if is_sizes(x) or is_sizes(y) or x.dtype.kind == "u":
        return x // y
    if x.dtype.kind != "i":
        return x / y
    floor = x // y
    return floor + ((floor < 0) & (floor * y != x)).astype(x.dtype)


@operator("Pow")
def power(x: Any, y: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
    """A power in the dtype of the base."""
    y = _aligned(y, x.ndim, axis) if broadcast else y
    if x.dtype == y.dtype:
        return np.power(x, y)
    kinds = x.dtype.kind + y.dtype.kind
    if kinds in ("ii", "uu", "iu", "ui"):
        return np.power(x, y.astype(x.dtype))
    return np.power(x.astype(np.result_type(x.dtype, y.dtype)), y).astype(x.dtype)


@operator("Mod")
def modulo(x: Any, y: Any, *, fmod: int = 0) -> Any:
    return np.fmod(x, y) if fmod else np.remainder(x, y)


@operator("BitShift")
def bit_shift(x: Any, y: Any, *, direction: str = "") -> Any:
    return np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y)


def _of_all(function: Any, operands: tuple[Any, ...]) -> Any:
    return functools.reduce(function, operands)


@operator("Max", sizes=True)
def maximum(*operands: Any) -> Any:
    return _of_all(np.maximum, operands)


@operator("Min", sizes=True)
def minimum(*operands: Any) -> Any:
    return _of_all(np.minimum, operands)


@operator("Sum")
def total(*operands: Any) -> Any:
    return _of_all(np.add, operands)


@operator("Mean")
def mean(*operands: Any) -> Any:
    return _of_all(np.add, operands) / like(len(operands), operands[0])


@operator("Where", sizes=True)
def where(condition: Any, x: Any, y: Any) -> Any:
    if is_sizes(condition):
        condition = condition.astype(bool)
    return np.where(condition, x, y)


@operator("Clip", since=11)
def clip(x: Any, low: Any = None, high: Any = None) -> Any:
    """Elements between two numbers; the upper one wins."""
    result = x if low is None else np.maximum(x, low)
    return result if high is None else np.minimum(result, high)


@operator("Clip")
def clip_by_attributes(x: Any, *, min: float | None = None, max: float | None = None) -> Any:  # noqa: A002
    return clip(x, None if min is None else like(min, x), None if max is None else like(max, x))


@operator("PRelu", since=SINCE)
def parametric_relu(x: Any, slope: Any) -> Any:
    if x.dtype.kind == "u":
        return x
    return np.where(x < 0, x * slope, x)


@operator("PRelu")
def parametric_relu_of_channels(x: Any, slope: Any) -> Any:
    is_vector = getattr(slope, "ndim", 0) == 1 and x.ndim > 1
    return parametric_relu(x, np.reshape(slope, (-1, *(1,) * (x.ndim - 2))) if is_vector else slope)
