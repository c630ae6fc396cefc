"""Activations of networks."""

import math
from typing import Any

import numpy as np

from jitkernels.compiler.ir import special_functions
from jitkernels.torch.array_values import like
from jitkernels.torch.aten_table import operator
from jitkernels.torch.operators.elementwise import sigmoid

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
"""Of Klambauer et al., Self-Normalizing Neural Networks (2017)."""


@operator("relu.default")
def relu(x: Any) -> Any:
    return np.maximum(x, like(0, x))


@operator("relu6.default")
def relu6(x: Any) -> Any:
    return np.minimum(np.maximum(x, like(0, x)), like(6, x))


@operator("hardtanh.default")
def hardtanh(x: Any, min_val: Any = -1, max_val: Any = 1) -> Any:
    return np.minimum(np.maximum(x, like(min_val, x)), like(max_val, x))


@operator("leaky_relu.default")
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Any:
    return np.where(x > 0, x, x * like(negative_slope, x))


@operator("elu.default")
def elu(x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Any:
    below = like(alpha * scale, x) * np.expm1(x if input_scale == 1 else x * like(input_scale, x))
    return np.where(x > 0, x if scale == 1 else x * like(scale, x), below)


@operator("selu.default")
def selu(x: Any) -> Any:
    return elu(x, SELU_ALPHA, SELU_SCALE)


@operator("celu.default")
def celu(x: Any, alpha: Any = 1.0) -> Any:
    return np.where(x > 0, x, like(alpha, x) * np.expm1(x / like(alpha, x)))


@operator("silu.default")
def silu(x: Any) -> Any:
    return x * sigmoid(x)


@operator("mish.default")
def mish(x: Any) -> Any:
    return x * np.tanh(special_functions.softplus(x))


@operator("softplus.default")
def softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    scaled = x if beta == 1 else x * like(beta, x)
    soft = np.log1p(np.exp(np.minimum(scaled, like(threshold, x))))
    return np.where(scaled > like(threshold, x), x, soft if beta == 1 else soft / like(beta, x))


@operator("hardsigmoid.default")
def hardsigmoid(x: Any) -> Any:
    return np.minimum(np.maximum(x + like(3, x), like(0, x)), like(6, x)) / like(6, x)


@operator("hardswish.default")
def hardswish(x: Any) -> Any:
    return x * np.minimum(np.maximum(x + like(3, x), like(0, x)), like(6, x)) / like(6, x)


@operator("hardshrink.default")
def hardshrink(x: Any, lambd: Any = 0.5) -> Any:
    return np.where((x >= like(-lambd, x)) & (x <= like(lambd, x)), like(0, x), x)


@operator("softshrink.default")
def softshrink(x: Any, lambd: Any = 0.5) -> Any:
    lambd = like(lambd, x)
    return np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, x * like(0, x)))


@operator("threshold.default")
def threshold(x: Any, threshold: Any, value: Any) -> Any:
    return np.where(x <= like(threshold, x), like(value, x), x)


@operator("log_sigmoid_forward.default")
def log_sigmoid_forward(x: Any) -> Any:
    """``log(sigmoid(x))``, and the buffer that its gradient reads."""
    exponential = np.exp(-np.absolute(x))
    return np.minimum(x, like(0, x)) - np.log1p(exponential), exponential


@operator("gelu.default")
def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        inner = like(math.sqrt(2 / math.pi), x) * (x + like(0.044715, x) * x * x * x)
        return like(0.5, x) * x * (like(1, x) + np.tanh(inner))
    return like(0.5, x) * x * (like(1, x) + special_functions.erf(x * like(math.sqrt(0.5), x)))
