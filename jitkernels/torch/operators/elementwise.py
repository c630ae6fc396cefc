"""Arithmetic, comparisons and functions of single elements."""

from typing import Any

import numpy as np

from jitkernels.compiler.ir import special_functions
from jitkernels.torch.array_values import like
from jitkernels.torch.aten_table import operator

UNARY: dict[str, Any] = {
    "abs": np.absolute, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atanh": np.arctanh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp,
    "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "neg": np.negative, "round": np.rint, "sin": np.sin,
    "sinh": np.sinh, "sqrt": np.sqrt, "square": np.square, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "positive": np.positive, "deg2rad": np.deg2rad, "rad2deg": np.rad2deg, "erf": special_functions.erf,
    "erfc": special_functions.erfc, "lgamma": special_functions.lgamma, "digamma": special_functions.digamma,
    "conj": np.conjugate, "_conj": np.conjugate,
    "conj_physical": np.conjugate, "_conj_physical": np.conjugate,
}  # fmt: skip
PREDICATES = {"isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit, "isfinite": np.isfinite}
BINARY = {
    "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "fmax": np.fmax, "fmin": np.fmin,
    "atan2": np.arctan2, "hypot": np.hypot, "copysign": np.copysign, "nextafter": np.nextafter,
    "logaddexp": np.logaddexp, "logaddexp2": np.logaddexp2, "heaviside": np.heaviside, "fmod": np.fmod,
    "remainder": np.remainder, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "__lshift__": np.left_shift, "__rshift__": np.right_shift, "floor_divide": np.floor_divide, "gcd": np.gcd,
    "lcm": np.lcm, "__and__": np.bitwise_and, "__or__": np.bitwise_or, "__xor__": np.bitwise_xor,
}  # fmt: skip
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
LOGICAL = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
OVERLOADS = "Tensor", "Scalar", "default", "Scalar_Tensor", "Tensor_Scalar"
"""Overloads that differ in which operands are numbers."""
FLOATING_ONLY = "ceil", "floor", "trunc", "round"
"""Functions that leave ints unchanged."""


def _of_floats(function: Any) -> Any:
    return lambda x: function(x) if x.dtype.kind in "fc" else x


for _name, _function in UNARY.items():
    operator(f"{_name}.default", promotes="result")(_of_floats(_function) if _name in FLOATING_ONLY else _function)
for _name, _function in PREDICATES.items():
    operator(f"{_name}.default")(_function)
for _name, _function in BINARY.items():
    operator(*(f"{_name}.{overload}" for overload in OVERLOADS), promotes="result")(_function)
for _name, _function in COMPARISONS.items():
    operator(*(f"{_name}.{overload}" for overload in OVERLOADS), promotes="operands")(_function)
for _name, _function in LOGICAL.items():
    operator(f"{_name}.default")(_function)


@operator("sigmoid.default", promotes="result")
def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x)) if x.dtype.kind == "c" else special_functions.sigmoid(x)


@operator("sign.default", "sgn.default")
def sign(x: Any) -> Any:
    if x.dtype == bool:
        return x
    if x.dtype.kind == "c":
        size = np.absolute(x)
        return np.where(size == 0, like(0, x), x / np.where(size == 0, like(1, size), size))
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)  # 0 of NaN, as torch's


@operator("ldexp.Tensor", promotes="result")
def ldexp(x: Any, y: Any) -> Any:
    return x * np.exp2(y)


@operator("logical_not.default")
def logical_not(x: Any) -> Any:
    return np.logical_not(x)


@operator("bitwise_not.default")
def bitwise_not(x: Any) -> Any:
    return np.logical_not(x) if x.dtype == bool else np.invert(x)


@operator("add.Tensor", "add.Scalar", promotes="result")
def add(x: Any, y: Any, alpha: Any = 1) -> Any:
    return x + (y if alpha == 1 else y * alpha)


@operator("sub.Tensor", "sub.Scalar", promotes="result")
def subtract(x: Any, y: Any, alpha: Any = 1) -> Any:
    return x - (y if alpha == 1 else y * alpha)


@operator("rsub.Tensor", "rsub.Scalar", promotes="result")
def reversed_subtract(x: Any, y: Any, alpha: Any = 1) -> Any:
    return y - (x if alpha == 1 else x * alpha)


@operator("div.Tensor", "div.Scalar", "true_divide.Tensor", promotes="result")
def divide(x: Any, y: Any) -> Any:
    return x / y


@operator("div.Tensor_mode", "div.Scalar_mode", promotes="result")
def divide_rounded(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is None:
        return x / y
    if rounding_mode == "floor":
        return np.floor_divide(x, y)
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    quotient = np.floor_divide(x, y)
    is_lower = (np.remainder(x, y) != 0) & ((x < 0) != (y < 0))
    return quotient + is_lower.astype(x.dtype)


@operator("round.decimals")
def round_to_decimals(x: Any, decimals: int = 0) -> Any:
    scale = like(10.0 ** abs(decimals), x)
    return np.rint(x * scale) / scale if decimals >= 0 else np.rint(x / scale) * scale


@operator("reciprocal.default", promotes="result")
def reciprocal(x: Any) -> Any:
    return like(1, x) / x


@operator("rsqrt.default", promotes="result")
def rsqrt(x: Any) -> Any:
    return like(1, x) / np.sqrt(x)


@operator("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar", promotes="result")
def power(x: Any, y: Any) -> Any:
    if not hasattr(y, "dtype") and x.dtype.kind == "f":
        if y == 2:
            return x * x
        if y == 0.5:
            return np.sqrt(x)
        if y == -1:
            return like(1, x) / x
    if not hasattr(x, "dtype") and x == 2 and y.dtype.kind == "f":
        return np.exp2(y)
    return _integer_power(x, y) if hasattr(y, "dtype") and y.dtype.kind == "i" else np.power(x, y)


def _integer_power(x: Any, y: Any) -> Any:
    """A power of ints, which NumPy refuses for negative exponents: inverses, truncated."""
    one, zero = like(1, y), like(0, y)
    inverse = np.where(x == 1, one, np.where(x == -1, one - 2 * (y & one), zero))
    return np.where(y < 0, inverse, np.power(x, np.maximum(y, zero)))


@operator("clamp.default", "clamp.Tensor", "clip.default", promotes="result")
def clamp(x: Any, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """Elements between two bounds; the upper one wins."""
    result = x if min is None else np.maximum(x, min)
    return result if max is None else np.minimum(result, max)


@operator("clamp_min.default", "clamp_min.Tensor", promotes="result")
def clamp_min(x: Any, min: Any) -> Any:  # noqa: A002
    return np.maximum(x, min)


@operator("clamp_max.default", "clamp_max.Tensor", promotes="result")
def clamp_max(x: Any, max: Any) -> Any:  # noqa: A002
    return np.minimum(x, max)


@operator("where.self")
def where(condition: Any, x: Any, y: Any, result: Any = None) -> Any:
    return np.where(condition, x.astype(result.dtype), y.astype(result.dtype))


@operator("where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where_numbers(condition: Any, x: Any, y: Any, result: Any = None) -> Any:
    of = [one.astype(result.dtype) if hasattr(one, "dtype") else result.dtype.type(one) for one in (x, y)]
    return np.where(condition, *of)


@operator("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(x: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, value.astype(x.dtype) if hasattr(value, "astype") else like(value, x), x)


@operator("addcmul.default", promotes="result")
def addcmul(x: Any, y: Any, z: Any, value: Any = 1) -> Any:
    return x + (y * z if value == 1 else value * y * z)


@operator("addcdiv.default", promotes="result")
def addcdiv(x: Any, y: Any, z: Any, value: Any = 1) -> Any:
    return x + (y / z if value == 1 else value * (y / z))


@operator("lerp.Scalar", "lerp.Tensor")
def lerp(start: Any, end: Any, weight: Any) -> Any:
    """``start + weight * (end - start)``, from the end where the weight is at least a half, as torch does."""
    if hasattr(weight, "dtype"):
        near = np.absolute(weight) < 0.5
        return np.where(near, start + weight * (end - start), end - (end - start) * (1 - weight))
    return start + weight * (end - start) if abs(weight) < 0.5 else end - (end - start) * (1 - weight)


@operator("xlogy.Tensor", "xlogy.Scalar_Other", "xlogy.Scalar_Self", promotes="result")
def xlogy(x: Any, y: Any, result: Any = None) -> Any:
    x, y = (one if hasattr(one, "dtype") else result.dtype.type(one) for one in (x, y))
    product = x * np.log(y)
    return np.where((x == 0) & ~np.isnan(y), result.dtype.type(0), product)


@operator("nan_to_num.default")
def nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind != "f":
        return x
    limits = np.finfo(x.dtype)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    result = np.where(np.isnan(x), like(0 if nan is None else nan, x), x)
    result = np.where(result == np.inf, like(high, x), result)
    return np.where(result == -np.inf, like(low, x), result)


@operator("_to_copy.default", "convert_element_type.default", "to.dtype")
def to_copy(x: Any, dtype: Any = None) -> Any:
    if dtype is None or dtype == x.dtype:
        return np.copy(x)
    if dtype.kind == "b":
        return x != like(0, x)
    return x.astype(dtype)


@operator("clone.default", "alias.default", "detach.default", "lift_fresh_copy.default", "contiguous.default")
def clone(x: Any) -> Any:
    return x


@operator("copy.default")
def copy(x: Any, source: Any) -> Any:
    return np.broadcast_to(source.astype(x.dtype), x.shape)
