"""Functions that NumPy lacks, written with NumPy: for the interpreter and the kernels' references.

Called with traced arrays they become the operations of their names.
"""

import ctypes
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentTypeError

_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)
DIGAMMA_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
"""Of the asymptotic series of digamma in 1 / x**2 (DLMF 5.11.2)."""
FUNCTIONS: dict[Any, str] = {}
"""The functions with the names of their operations."""


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Dispatch to the operand's ``__array_function__`` if it is not NumPy's own array; refuse complex operands."""

    @functools.wraps(function)
    def dispatcher(*arrays: Any) -> Any:
        for array in arrays:
            if np.iscomplexobj(array):
                raise ArgumentTypeError(f"{function.__name__}: expected real numbers, got {array.dtype}")
            own = getattr(type(array), "__array_function__", None)
            if own not in (None, np.ndarray.__array_function__):
                return own(array, dispatcher, (type(array),), arrays, {})
        return function(*arrays)

    FUNCTIONS[dispatcher] = function.__name__
    return dispatcher


@_operation
def erf(x: Any) -> Any:
    """The error function."""
    return np.asarray(_erf(x)).astype(np.asarray(x).dtype)


@_operation
def erfc(x: Any) -> Any:
    """``1 - erf(x)``."""
    return np.asarray(_erfc(x)).astype(np.asarray(x).dtype)


def _at_pole(function: Callable[[float], float], pole: float) -> Any:
    """A function of `math` without exceptions: infinite where it overflows, `pole` at negative integers."""

    def of_number(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.copysign(math.inf, x)
        except ValueError:
            return pole if x or pole == math.inf else math.copysign(math.inf, x)

    return np.frompyfunc(of_number, 1, 1)


_gamma, _lgamma = _at_pole(math.gamma, math.nan), _at_pole(math.lgamma, math.inf)


@_operation
def gamma(x: Any) -> Any:
    """The gamma function: NaN at negative integers, infinite at zeros."""
    return np.asarray(_gamma(np.asarray(x, float))).astype(np.asarray(x).dtype)


@_operation
def lgamma(x: Any) -> Any:
    """``log(abs(gamma(x)))``."""
    return np.asarray(_lgamma(np.asarray(x, float))).astype(np.asarray(x).dtype)


@_operation
def digamma(x: Any) -> Any:
    """The derivative of ``log(gamma(x))``: NaN at negative integers, infinite at zeros."""
    wide = np.asarray(x, np.longdouble)
    with np.errstate(all="ignore"):
        f = wide - np.rint(wide)
        reflected = np.where((wide < 0) & (f == 0), np.nan, np.longdouble(np.pi) / np.tan(np.longdouble(np.pi) * f))
        y = np.where(wide < 0, 1 - wide, wide)
        sums = sum(1 / (y + k) for k in range(16))
        z = y + 16
        tail = sum(term / z ** (2 * k + 2) for k, term in enumerate(DIGAMMA_TERMS))
        result = np.where(np.isinf(y), y, np.log(z) - 1 / (2 * z) - tail - sums)
        return np.where(wide < 0, result - reflected, result).astype(np.asarray(x).dtype)


@_operation
def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, np.asarray(x).dtype.type(1)) / (1 + small)


@_operation
def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return np.logaddexp(x, np.asarray(x).dtype.type(0))


@_operation
def log_hypot(x: Any, y: Any) -> Any:
    """``log(hypot(x, y))``, accurate where the length is about 1."""
    wide: Any = np.result_type(x, y, np.complex64)
    number = np.zeros(np.broadcast_shapes(np.shape(x), np.shape(y)), wide)
    number.real, number.imag = x, y
    return np.log(number).real.astype(np.result_type(x, y))


@functools.cache
def _of_c_library(name: str) -> Any:
    """A universal function of one of the C library's functions of doubles."""
    function = getattr(ctypes.CDLL(None), name)
    function.restype, function.argtypes = ctypes.c_double, (ctypes.c_double,)
    return np.frompyfunc(function, 1, 1)


@_operation
def libm_exp(x: Any) -> Any:
    """The exponential of the C library."""
    return np.asarray(_of_c_library("exp")(x)).astype(np.asarray(x).dtype)


@_operation
def libm_log(x: Any) -> Any:
    """The logarithm of the C library."""
    return np.asarray(_of_c_library("log")(x)).astype(np.asarray(x).dtype)


@_operation
def libm_log1p(x: Any) -> Any:
    """``log(1 + x)`` of the C library."""
    return np.asarray(_of_c_library("log1p")(x)).astype(np.asarray(x).dtype)


@_operation
def multiply_high(x: Any, y: Any) -> Any:
    """The upper half of the product of two unsigned integers."""
    dtype = np.asarray(x).dtype
    product = np.multiply(np.asarray(x).astype(object), np.asarray(y).astype(object))
    return np.asarray(product >> 8 * dtype.itemsize).astype(dtype)


def activate(name: str, x: Any) -> Any:
    """The activation of a recurrent cell, a product or a convolution by its name."""
    if name == "sigmoid":
        return sigmoid(x)
    if name == "silu":
        return x * sigmoid(x)
    if name == "gelu":
        return x * erfc(-x * math.sqrt(0.5)) / 2
    if name == "tanh":
        return np.tanh(x)
    return np.maximum(x, 0) if name == "relu" else x
