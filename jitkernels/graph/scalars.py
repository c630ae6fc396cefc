"""Elementwise operations: for each NumPy's function, which decides dtypes, and the scalar code of each kind of loop."""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.maths import basic

if TYPE_CHECKING:
    from jitkernels.graph.ir import Node

FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", *FLOATS)
"""Element types that graphs know. Arrays of others are left to NumPy."""


@dataclass(frozen=True)
class Scalar:
    """One elementwise operation.

    `numpy` computes it and, where it is a ufunc, decides dtypes. `code` maps kinds of NumPy's dtypes (``b``, ``i``, ``u``,
    ``f``) of the first operand of a loop to scalar code; text names a function of `jitkernels.maths`, which has one for
    each type. `cost` is how long it takes, about, in additions. `choice`: the first operand is a condition.
    """

    name: str
    numpy: Callable[..., Any]
    code: Mapping[str, Callable[..., Any] | str] = field(repr=False)
    cost: float = 1.0
    choice: bool = False

    def function(self, dtypes: tuple[str, ...]) -> Callable[..., Any] | None:
        """The scalar code for operands of these dtypes; None where there is none yet."""
        deciding = dtypes[1] if self.choice else dtypes[0]
        found = self.code.get(np.dtype(deciding).kind)
        if isinstance(found, str):
            return mathematics(found, "float64" if deciding == "float64" else "float32")
        return found

    def verify(self, node: "Node") -> str:
        """What is wrong with a node."""
        given = tuple(one.dtype for one in node.inputs)
        if node.ndim < max((one.ndim for one in node.inputs), default=0):
            return f"{node.ndim} dimensions of inputs with more"
        if self.function(given) is None:
            return f"there is no scalar code for {', '.join(given)}"
        return ""


@functools.cache
def mathematics(name: str, dtype: str) -> Callable[..., Any] | None:
    """A function of `jitkernels.maths` for one type; None where there is none yet."""
    table = importlib.import_module("jitkernels.maths.table")
    found: Callable[..., Any] | None = table.function(name, dtype)
    return found


def _numbers(function: Any, **others: Any) -> dict[str, Any]:
    return {"i": function, "u": function, "f": function, **others}


def _all(function: Any) -> dict[str, Any]:
    return _numbers(function, b=function)


def _of_maths(name: str, ufunc: Callable[..., Any], cost: float = 15.0) -> Scalar:
    return Scalar(name, ufunc, {"f": name}, cost)


def _special(name: str) -> Callable[..., Any]:
    """A function that NumPy lacks, in NumPy's own terms, for the interpreter."""

    def run(*arrays: Any) -> Any:
        return getattr(importlib.import_module("jitkernels.graph.special"), name)(*arrays)

    return run


_extremes = {"i": basic.larger_integer, "u": basic.larger_integer, "b": basic.either}
_least = {"i": basic.smaller_integer, "u": basic.smaller_integer, "b": basic.both}

SCALARS: dict[str, Scalar] = {
    scalar.name: scalar
    for scalar in (
        Scalar("add", np.add, _numbers(basic.add, b=basic.either)),
        Scalar("subtract", np.subtract, _numbers(basic.subtract)),
        Scalar("multiply", np.multiply, _numbers(basic.multiply, b=basic.both)),
        Scalar("divide", np.divide, {"f": basic.divide}, 4),
        Scalar("floor_divide", np.floor_divide, {"i": basic.floor_quotient, "u": basic.floor_quotient, "f": "floor_divide"}, 20),
        Scalar("remainder", np.remainder, {"i": basic.floor_remainder, "u": basic.floor_remainder, "f": "remainder"}, 20),
        Scalar("fmod", np.fmod, {"f": "fmod"}, 20),
        Scalar("negative", np.negative, _numbers(basic.negative)),
        Scalar("positive", np.positive, _numbers(basic.positive)),
        Scalar("absolute", np.absolute, _numbers(basic.absolute, u=basic.positive, b=basic.positive)),
        Scalar("fabs", np.fabs, {"f": basic.absolute}),
        Scalar("square", np.square, _numbers(basic.square)),
        Scalar("reciprocal", np.reciprocal, {"f": basic.reciprocal}, 4),
        Scalar("sqrt", np.sqrt, {"f": basic.square_root}, 5),
        Scalar("floor", np.floor, {"f": basic.floor, "i": basic.positive, "u": basic.positive, "b": basic.positive}),
        Scalar("ceil", np.ceil, {"f": basic.ceil, "i": basic.positive, "u": basic.positive, "b": basic.positive}),
        Scalar("trunc", np.trunc, {"f": basic.trunc, "i": basic.positive, "u": basic.positive, "b": basic.positive}),
        Scalar("rint", np.rint, {"f": basic.rint}),
        Scalar("sign", np.sign, {"f": basic.sign, "i": basic.sign_of_integer, "u": basic.sign_of_integer}, 3),
        Scalar("copysign", np.copysign, {"f": basic.copysign}),
        Scalar("signbit", np.signbit, {"f": "signbit"}),
        Scalar("maximum", np.maximum, {**_extremes, "f": basic.maximum}, 2),
        Scalar("minimum", np.minimum, {**_least, "f": basic.minimum}, 2),
        Scalar("fmax", np.fmax, {**_extremes, "f": basic.fmax}, 2),
        Scalar("fmin", np.fmin, {**_least, "f": basic.fmin}, 2),
        Scalar("equal", np.equal, _all(basic.equal)),
        Scalar("not_equal", np.not_equal, _all(basic.not_equal)),
        Scalar("less", np.less, _all(basic.less)),
        Scalar("less_equal", np.less_equal, _all(basic.less_equal)),
        Scalar("greater", np.greater, _all(basic.greater)),
        Scalar("greater_equal", np.greater_equal, _all(basic.greater_equal)),
        Scalar("logical_and", np.logical_and, _numbers(basic.logical_and, b=basic.both)),
        Scalar("logical_or", np.logical_or, _numbers(basic.logical_or, b=basic.either)),
        Scalar("logical_xor", np.logical_xor, _numbers(basic.logical_xor, b=basic.differing)),
        Scalar("logical_not", np.logical_not, _numbers(basic.logical_not, b=basic.inverted)),
        Scalar("bitwise_and", np.bitwise_and, {"i": basic.both, "u": basic.both, "b": basic.both}),
        Scalar("bitwise_or", np.bitwise_or, {"i": basic.either, "u": basic.either, "b": basic.either}),
        Scalar("bitwise_xor", np.bitwise_xor, {"i": basic.differing, "u": basic.differing, "b": basic.differing}),
        Scalar("invert", np.invert, {"i": basic.inverted, "u": basic.inverted, "b": basic.inverted}),
        Scalar("left_shift", np.left_shift, {"i": basic.left_shift, "u": basic.left_shift}, 2),
        Scalar("right_shift", np.right_shift, {"i": basic.right_shift, "u": basic.right_shift}, 2),
        Scalar("isnan", np.isnan, {"f": basic.is_nan}),
        Scalar("isinf", np.isinf, {"f": basic.is_infinite}),
        Scalar("isfinite", np.isfinite, {"f": basic.is_finite}),
        Scalar("where", np.where, _all(basic.choose), choice=True),
        _of_maths("exp", np.exp, 12),
        _of_maths("exp2", np.exp2),
        _of_maths("expm1", np.expm1),
        _of_maths("log", np.log),
        _of_maths("log2", np.log2),
        _of_maths("log10", np.log10),
        _of_maths("log1p", np.log1p),
        _of_maths("power", np.power, 40),
        _of_maths("cbrt", np.cbrt),
        _of_maths("hypot", np.hypot, 10),
        _of_maths("sin", np.sin, 20),
        _of_maths("cos", np.cos, 20),
        _of_maths("tan", np.tan, 25),
        _of_maths("arcsin", np.arcsin, 20),
        _of_maths("arccos", np.arccos, 20),
        _of_maths("arctan", np.arctan, 20),
        _of_maths("arctan2", np.arctan2, 25),
        _of_maths("sinh", np.sinh, 20),
        _of_maths("cosh", np.cosh, 20),
        _of_maths("tanh", np.tanh),
        _of_maths("arcsinh", np.arcsinh, 25),
        _of_maths("arccosh", np.arccosh, 25),
        _of_maths("arctanh", np.arctanh, 25),
        _of_maths("logaddexp", np.logaddexp, 30),
        _of_maths("logaddexp2", np.logaddexp2, 30),
        _of_maths("erf", _special("erf"), 25),
        _of_maths("erfc", _special("erfc"), 30),
        _of_maths("sigmoid", _special("sigmoid")),
        _of_maths("softplus", _special("softplus"), 30),
    )
}  # fmt: skip
BY_UFUNC: dict[Any, str] = {
    scalar.numpy: name for name, scalar in SCALARS.items() if isinstance(scalar.numpy, np.ufunc)
}
