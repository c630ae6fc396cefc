"""Functions that NumPy lacks, written with NumPy: for the interpreter and the kernels' references.

Called with traced arrays they become the operations of their names.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)
FUNCTIONS: dict[Any, str] = {}
"""The functions with the names of their operations."""


def _operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Dispatch to the operand's ``__array_function__`` if it is not NumPy's own array."""

    @functools.wraps(function)
    def dispatcher(*arrays: Any) -> Any:
        for array in arrays:
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
