"""Activations of networks: elementwise, and along an axis."""

import math
from typing import Any

import numpy as np

from jitkernels.compiler.ir import special_functions
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import axis_of, like, numbers


@operator("Relu")
def relu(x: Any) -> Any:
    return np.maximum(x, like(0, x))


@operator("LeakyRelu")
def leaky_relu(x: Any, *, alpha: float = 0.01) -> Any:
    return np.where(x < 0, x * like(alpha, x), x)


@operator("ThresholdedRelu")
def thresholded_relu(x: Any, *, alpha: float = 1.0) -> Any:
    return np.where(x > like(alpha, x), x, like(0, x))


@operator("Elu")
def elu(x: Any, *, alpha: float = 1.0) -> Any:
    return np.where(x < 0, like(alpha, x) * np.expm1(np.minimum(x, like(0, x))), x)


@operator("Celu")
def celu(x: Any, *, alpha: float = 1.0) -> Any:
    zero, scale = like(0, x), like(alpha, x)
    return np.maximum(zero, x) + np.minimum(zero, scale * np.expm1(x / scale))


@operator("Selu")
def selu(x: Any, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Any:
    return like(gamma, x) * np.where(x > 0, x, like(alpha, x) * np.expm1(np.minimum(x, like(0, x))))


@operator("HardSigmoid")
def hard_sigmoid(x: Any, *, alpha: float = 0.2, beta: float = 0.5) -> Any:
    return np.maximum(like(0, x), np.minimum(like(1, x), like(alpha, x) * x + like(beta, x)))


@operator("HardSwish")
def hard_swish(x: Any) -> Any:
    return x * hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@operator("Softplus")
def softplus(x: Any) -> Any:
    return special_functions.softplus(x)


@operator("Softsign")
def softsign(x: Any) -> Any:
    return x / (like(1, x) + np.absolute(x))


@operator("Mish")
def mish(x: Any) -> Any:
    return x * np.tanh(special_functions.softplus(x))


@operator("Swish")
def swish(x: Any, *, alpha: float = 1.0) -> Any:
    return x * special_functions.sigmoid(like(alpha, x) * x)


@operator("Gelu")
def gelu(x: Any, *, approximate: str = "none") -> Any:
    half, one = like(0.5, x), like(1, x)
    if approximate == "tanh":
        inner = like(math.sqrt(2 / math.pi), x) * (x + like(0.044715, x) * (x * x * x))
        return half * x * (one + np.tanh(inner))
    return half * x * (one + special_functions.erf(x * like(math.sqrt(0.5), x)))


@operator("Shrink")
def shrink(x: Any, *, bias: float = 0.0, lambd: float = 0.5) -> Any:
    shifted = np.where(x > like(lambd, x), x - like(bias, x), like(0, x))
    return np.where(x < like(-lambd, x), x + like(bias, x), shifted)


@operator("Softmax", since=13)
def softmax(x: Any, *, axis: int = -1) -> Any:
    exponentials = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return exponentials / np.sum(exponentials, axis=axis, keepdims=True)


@operator("LogSoftmax", since=13)
def log_softmax(x: Any, *, axis: int = -1) -> Any:
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@operator("Hardmax", since=13)
def hardmax(x: Any, *, axis: int = -1) -> Any:
    axis = axis_of(axis, x.ndim)
    first = np.expand_dims(np.argmax(x, axis=axis), axis)
    positions = np.reshape(numbers(x.shape[axis]), (*(1,) * axis, -1, *(1,) * (x.ndim - axis - 1)))
    return (positions == first).astype(x.dtype)


def _of_rows(function: Any) -> Any:
    """A function of an old opset: along all axes from `axis` on, as one."""

    def compute(x: Any, *, axis: int = 1) -> Any:
        axis = axis_of(axis, x.ndim)
        rows = np.reshape(x, (math.prod(x.shape[:axis]), -1)) if axis else np.reshape(x, (1, -1))
        return np.reshape(function(rows, axis=-1), x.shape)

    return compute


operator("Softmax")(_of_rows(softmax))
operator("LogSoftmax")(_of_rows(log_softmax))
operator("Hardmax")(_of_rows(hardmax))


@operator("SwiGLU")
def swiglu(x: Any, y: Any, *, alpha: float = 1.0) -> Any:
    return swish(x, alpha=alpha) * y
