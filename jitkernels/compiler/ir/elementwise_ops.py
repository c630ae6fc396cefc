"""Elementwise operations: NumPy's function, which decides dtypes, and the scalar code for each kind of dtype."""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.microkernels.maths import basic, integer_functions, mixed_signs

if TYPE_CHECKING:
    from jitkernels.compiler.ir.graph import Node

FLOATS = ("float16", "float32", "float64")
PLANES = {"complex64": "float32", "complex128": "float64"}
"""The complex dtypes, with that of their real and imaginary planes."""
REALS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", *FLOATS)
DTYPES = (*REALS, *PLANES)
"""Element types of graphs. Functions of arrays of others fall back to NumPy."""


def is_known(dtype: "np.dtype[Any]") -> bool:
    """Whether graphs support arrays of a dtype: one of DTYPES in native byte order."""
    return dtype.name in DTYPES and bool(dtype.isnative)


OF_COMPLEX = frozenset(
    {
        "add", "subtract", "multiply", "divide", "negative", "positive", "conjugate", "absolute", "square",
        "reciprocal",
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "maximum", "minimum", "fmax", "fmin",
        "isnan", "isinf", "isfinite", "where", "logical_and", "logical_or", "logical_xor", "logical_not", "sign",
        "exp", "exp2", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "power",
    }
)  # fmt: skip
"""Operations of complex numbers, which `compiler.transforms.complex_planes` writes as operations of their planes."""
BETWEEN_PLANES = frozenset({"real", "imag", "complex"})
"""Operations between complex numbers in memory and their planes, for which the code generator has lanes."""
ROUNDED = frozenset({"add", "subtract", "multiply", "divide", "square", "reciprocal", "sqrt"})
"""Operations that the processor rounds; others that call no function of `microkernels.maths` are exact."""


@frozen_dataclass
class Scalar:
    """One elementwise operation.

    `numpy` computes it and, where it is a ufunc, decides dtypes. `code` maps kinds of NumPy's dtypes (``b``, ``i``,
    ``u``, ``f``) of the first operand to scalar code, ``e`` is float16 where that has its own, and ``iu`` and ``ui``
    are those of two operands of which one is signed; a string names a function of `jitkernels.microkernels.maths`,
    which has one for each type. `cost`: approximate time in additions. `choice`: the first operand is a condition.
    `halves`: the code takes float16 itself; other code takes float16 as float32, as NumPy does.
    """

    name: str
    numpy: Callable[..., Any]
    code: Mapping[str, Callable[..., Any] | str] = field(repr=False)
    cost: float = 1.0
    choice: bool = False
    halves: bool = False

    def function(self, dtypes: tuple[str, ...]) -> Callable[..., Any] | None:
        """The scalar code for operands of these dtypes; None where there is none."""
        deciding = dtypes[1] if self.choice else dtypes[0]
        code = self.code.get(_kind(deciding, dtypes[-1]))
        if deciding == "float16":
            code = self.code.get("e", code)
        if isinstance(code, str):
            is_half = deciding == "float16" and not self.halves
            return mathematics(code, "float32" if is_half else deciding)
        return code

    def takes(self, dtypes: tuple[str, ...]) -> bool:
        """Whether there is code for operands of these dtypes, or for the planes of complex ones."""
        return self.function(dtypes) is not None or (self.name in OF_COMPLEX and dtypes[-1] in PLANES)

    @property
    def ulp(self) -> float:
        """An error bound of the scalar code for floats against NumPy's function, in units of the last place.

        One rounding, which contraction to FMA omits, or the errors of both functions.
        """
        if isinstance(self.code.get("f"), str):
            return 8.0
        return 1.0 if self.name in ROUNDED else 0.0

    def verify(self, node: "Node") -> str:
        """What is wrong with a node; "" if nothing is."""
        dtypes = tuple(operand.dtype for operand in node.inputs)
        if node.ndim < max((operand.ndim for operand in node.inputs), default=0):
            return f"expected at least as many dimensions as its inputs have, got {node.ndim}"
        if self.function(dtypes) is None:
            return f"there is no scalar code for {', '.join(dtypes)}"
        return ""


def _kind(first: str, last: str) -> str:
    """The kind of the first operand, or of both operands where they are integers of which one is signed."""
    kinds = np.dtype(first).kind + np.dtype(last).kind
    return kinds if kinds in ("iu", "ui") else kinds[0]


@functools.cache
def mathematics(name: str, dtype: str) -> Callable[..., Any] | None:
    """A function of `jitkernels.microkernels.maths` for one type; None where there is none."""
    table = importlib.import_module("jitkernels.microkernels.maths.function_table")
    function: Callable[..., Any] | None = table.function(name, dtype)
    return function


def _numbers(function: Any, **others: Any) -> dict[str, Any]:
    return {"i": function, "u": function, "f": function} | others


def _all(function: Any, **others: Any) -> dict[str, Any]:
    return _numbers(function, b=function, **others)


def _of_maths(name: str, ufunc: Callable[..., Any], cost: float = 15.0) -> Scalar:
    return Scalar(name, ufunc, {"f": name}, cost)


def _special(name: str) -> Callable[..., Any]:
    """A function that NumPy lacks, written with NumPy, for the interpreter."""

    def run(*arrays: Any) -> Any:
        return getattr(importlib.import_module("jitkernels.compiler.ir.special_functions"), name)(*arrays)

    return run


def _whole(integer: Any, floating: Any) -> dict[str, Any]:
    return {"i": integer, "u": integer, "f": floating}


def _compared(name: str, reversed_name: str) -> dict[str, Any]:
    mixed = getattr(mixed_signs, name), getattr(mixed_signs, reversed_name)
    return _all(getattr(basic, name), iu=mixed[0], ui=mixed[1])


def _interleave(re: Any, im: Any) -> Any:
    """Complex numbers of two planes."""
    re, im = np.broadcast_arrays(re, im)
    result = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    result.real, result.imag = re, im
    return result


def emitted(*operands: Any) -> Any:
    """The scalar code of operations between complex numbers and their planes, for which the generator has lanes."""
    raise AssertionError(f"the code generator emits these operations of {operands}")


_divided: dict[str, Any] = {"i": basic.floor_quotient_of_signed, "u": basic.floor_quotient, "f": "floor_divide"}
_extremes = {"i": basic.larger_integer, "u": basic.larger_integer, "b": basic.either}
_bits = {"i": integer_functions.bits_of_size, "u": integer_functions.bits_of_number}
_least = {"i": basic.smaller_integer, "u": basic.smaller_integer, "b": basic.both}

SCALARS: dict[str, Scalar] = {
    scalar.name: scalar
    for scalar in (
        Scalar("add", np.add, _numbers(basic.add, b=basic.either)),
        Scalar("subtract", np.subtract, _numbers(basic.subtract)),
        Scalar("multiply", np.multiply, _numbers(basic.multiply, b=basic.both)),
        Scalar("divide", np.divide, {"f": basic.divide}, 4),
        Scalar("floor_divide", np.floor_divide, _divided, 20),
        Scalar("remainder", np.remainder, _whole(basic.floor_remainder, "remainder"), 20),
        Scalar("fmod", np.fmod, {"f": "fmod", "i": integer_functions.fmod, "u": basic.floor_remainder}, 20),
        Scalar("negative", np.negative, _numbers(basic.negative), halves=True),
        Scalar("positive", np.positive, _numbers(basic.positive), halves=True),
        Scalar("absolute", np.absolute, _numbers(basic.absolute, u=basic.positive, b=basic.positive), halves=True),
        Scalar("fabs", np.fabs, {"f": basic.absolute}, halves=True),
        Scalar("square", np.square, _numbers(basic.square)),
        Scalar("reciprocal", np.reciprocal, _whole(basic.whole_reciprocal, basic.reciprocal), 4),
        Scalar("sqrt", np.sqrt, {"f": basic.square_root}, 5),
        Scalar("floor", np.floor, {"f": basic.floor, "i": basic.positive, "u": basic.positive, "b": basic.positive}),
        Scalar("ceil", np.ceil, {"f": basic.ceil, "i": basic.positive, "u": basic.positive, "b": basic.positive}),
        Scalar("trunc", np.trunc, {"f": basic.trunc, "i": basic.positive, "u": basic.positive, "b": basic.positive}),
        Scalar("rint", np.rint, {"f": basic.rint}),
        Scalar("sign", np.sign, {"f": basic.sign, "i": basic.sign_of_integer, "u": basic.sign_of_integer}, 3),
        Scalar("copysign", np.copysign, {"f": basic.copysign}, halves=True),
        Scalar("signbit", np.signbit, {"f": basic.signbit}, halves=True),
        Scalar("heaviside", np.heaviside, {"f": basic.heaviside}, 3),
        Scalar("nextafter", np.nextafter, {"f": "nextafter"}, 5, halves=True),
        Scalar("spacing", np.spacing, {"f": "spacing"}, 2, halves=True),
        Scalar("ldexp", np.ldexp, {"f": "ldexp"}, 15),
        Scalar("gcd", np.gcd, {"i": integer_functions.gcd, "u": integer_functions.gcd_of_numbers}, 200),
        Scalar("lcm", np.lcm, {"i": integer_functions.lcm, "u": integer_functions.lcm_of_numbers}, 200),
        Scalar("bitwise_count", np.bitwise_count, _bits, 12),
        # LLVM turns its own extremes of float32 into those of float16, which lose the sign of NaN.
        Scalar("maximum", np.maximum, {**_extremes, "f": basic.maximum, "e": basic.larger_or_nan}, 2),
        Scalar("minimum", np.minimum, {**_least, "f": basic.minimum, "e": basic.smaller_or_nan}, 2),
        Scalar("fmax", np.fmax, {**_extremes, "f": basic.fmax}, 2),
        Scalar("fmin", np.fmin, {**_least, "f": basic.fmin}, 2),
        Scalar("equal", np.equal, _compared("equal", "equal_to_signed")),
        Scalar("not_equal", np.not_equal, _compared("not_equal", "not_equal_to_signed")),
        Scalar("less", np.less, _compared("less", "less_than_signed")),
        Scalar("less_equal", np.less_equal, _compared("less_equal", "less_equal_than_signed")),
        Scalar("greater", np.greater, _compared("greater", "greater_than_signed")),
        Scalar("greater_equal", np.greater_equal, _compared("greater_equal", "greater_equal_than_signed")),
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
        Scalar("isnan", np.isnan, _all(basic.is_nan)),
        Scalar("isinf", np.isinf, _all(basic.never, f=basic.is_infinite)),
        Scalar("isfinite", np.isfinite, _all(basic.always, f=basic.is_finite)),
        Scalar("conjugate", np.conjugate, {}),
        Scalar("real", np.real, {"c": emitted}),
        Scalar("imag", np.imag, {"c": emitted}),
        Scalar("complex", _interleave, {"f": emitted}),
        Scalar("where", np.where, _all(basic.choose), choice=True, halves=True),
        _of_maths("exp", np.exp, 12),
        _of_maths("exp2", np.exp2),
        _of_maths("expm1", np.expm1),
        _of_maths("log", np.log),
        _of_maths("log2", np.log2),
        _of_maths("log10", np.log10),
        _of_maths("log1p", np.log1p),
        Scalar("power", np.power, _whole(integer_functions.power, "power"), 40),
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
        _of_maths("gamma", _special("gamma"), 60),
        _of_maths("lgamma", _special("lgamma"), 60),
        _of_maths("digamma", _special("digamma"), 60),
        _of_maths("sigmoid", _special("sigmoid")),
        _of_maths("log_hypot", _special("log_hypot"), 40),
        _of_maths("softplus", _special("softplus"), 30),
        _of_maths("libm_exp", _special("libm_exp"), 20),
        _of_maths("libm_log", _special("libm_log"), 20),
        _of_maths("libm_log1p", _special("libm_log1p"), 30),
        Scalar("multiply_high", _special("multiply_high"), {"u": integer_functions.multiply_high}, 2),
    )
}  # fmt: skip
BY_UFUNC: dict[Any, str] = {
    scalar.numpy: name for name, scalar in SCALARS.items() if isinstance(scalar.numpy, np.ufunc)
}
