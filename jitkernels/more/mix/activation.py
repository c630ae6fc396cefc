"""Activations of a part of a vector by the kernels VSIGMOID and VEXP: `activate(x, y, n)`, where y does not alias x.

Each returns the status of the kernel that it calls.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.vector import VExpAttr, VSigmoidAttr
from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.chunking import PIECE
from jitkernels.more.mix.component import component


def activation(name: str, dtype: str) -> Any:
    """Return the activation of a name of `LSTMCtHtAttr`, for range kernels to call."""
    return {"sigmoid": _sigmoid, "tanh": _tanh, "relu": _relu, "identity": _identity}[name](dtype)


def _sigmoid(dtype: str) -> Any:
    return component(VSigmoidAttr(n=PIECE, dtype=dtype))


def _tanh(dtype: str) -> Any:
    """(1 - e) / (1 + e) with e = exp(-2|x|), where that difference does not cancel; else a rational function.

    The latter is Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))) down to 15, whose
    coefficients are integers and whose relative error is 2**-62 at 1/2. Both share one division.
    """
    exp = component(VExpAttr(n=PIECE, dtype=dtype))
    number = np.dtype(dtype).type
    zero, half, one, two = number(0), number(0.5), number(1), number(2)
    p0, p1, p2, p3 = number(2027025), number(270270), number(6930), number(36)
    q1, q2, q3 = number(945945), number(51975), number(630)

    @inlined("contract")
    def tanh(x: Any, y: Any, n: int) -> Any:
        for i in range(n):
            y[i] = -two * abs(x[i])
        status = exp(y, y, n)
        for i in range(n):
            value, e = x[i], y[i]
            square = value * value
            above = value * (((p3 * square + p2) * square + p1) * square + p0)
            below = (((square + q3) * square + q2) * square + q1) * square + p0
            difference = one - e
            signed = -difference if value < zero else difference
            small = abs(value) < half
            y[i] = (above if small else signed) / (below if small else one + e)
        return status

    return tanh


def _relu(dtype: str) -> Any:
    zero = np.dtype(dtype).type(0)

    @inlined()
    def relu(x: Any, y: Any, n: int) -> int:
        for i in range(n):
            y[i] = max(x[i], zero)  # x first: Python's max returns it when it is NaN
        return 0

    return relu


def _identity(dtype: str) -> Any:
    @inlined()
    def identity(x: Any, y: Any, n: int) -> int:
        for i in range(n):
            y[i] = x[i]
        return 0

    return identity
