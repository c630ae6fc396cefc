"""Normalizations: by the moments of batches, channels, groups and rows."""

import math
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.local_response_norm import MAX_BETA, MAX_NEIGHBOURS
from jitkernels.compiler.capture.kernels.layers import of_channels, standardized
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import axis_of, is_traced, like


@operator("BatchNormalization")
def batch_normalization(
    x: Any, scale: Any, bias: Any, mean: Any, variance: Any, *, epsilon: float = 1e-5, node: Any = None,
) -> Any:  # fmt: skip
    """With given moments, folded to a factor and a term of each channel; in training with those of the batch."""
    training = node.attributes.get("training_mode", 0) and node.opset >= 14
    if training:
        momentum = node.attributes.get("momentum", 0.9)
        axes = (0, *range(2, x.ndim))
        own_mean, own_variance = np.mean(x, axis=axes), np.var(x, axis=axes)
        new_mean = mean * like(momentum, mean) + own_mean * like(1 - momentum, mean)
        new_variance = variance * like(momentum, mean) + own_variance * like(1 - momentum, mean)
        return _normalized(x, scale, bias, own_mean, own_variance, epsilon), new_mean, new_variance
    return _normalized(x, scale, bias, mean, variance, epsilon)


def _normalized(x: Any, scale: Any, bias: Any, mean: Any, variance: Any, epsilon: float) -> Any:
    factor = scale / np.sqrt(variance + like(epsilon, variance))
    term = bias - mean * factor
    if x.ndim == 4:  # on channels last, as most images lie
        return np.transpose((np.transpose(x, (0, 2, 3, 1)) * factor + term).astype(x.dtype), (0, 3, 1, 2))
    return (x * of_channels(factor, x.ndim) + of_channels(term, x.ndim)).astype(x.dtype)


@operator("InstanceNormalization")
def instance_normalization(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    normal, _, _ = standardized(x, tuple(range(2, x.ndim)), epsilon)
    return normal * of_channels(scale, x.ndim) + of_channels(bias, x.ndim)


@operator("LayerNormalization")
def layer_normalization(x: Any, scale: Any, bias: Any = None, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    """Rows less their mean, divided by their deviation; moments in float32 for narrower types."""
    axis = axis_of(axis, x.ndim)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    normal, mean, inverse = standardized(wide, tuple(range(axis, x.ndim)), epsilon)
    result = normal.astype(x.dtype) * scale
    return (result if bias is None else result + bias), mean, inverse


@operator("RMSNormalization")
def rms_normalization(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    axis = axis_of(axis, x.ndim)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    square = np.mean(wide * wide, axis=tuple(range(axis, x.ndim)), keepdims=True)
    return (wide / np.sqrt(square + like(epsilon, wide))).astype(x.dtype) * scale


@operator("GroupNormalization")
def group_normalization(
    x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5, node: Any = None
) -> Any:
    batch, channels = x.shape[:2]
    size = channels // num_groups
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    groups = np.reshape(wide, (batch, num_groups, size * math.prod(x.shape[2:])))
    normal, _, _ = standardized(groups, (2,), epsilon)
    if node.opset < 21:  # then one scale for each group
        scale, bias = np.repeat(scale, int(size)), np.repeat(bias, int(size))
    normal = np.reshape(normal, x.shape).astype(x.dtype)
    return normal * of_channels(scale, x.ndim) + of_channels(bias, x.ndim)


@operator("LpNormalization")
def lp_normalization(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    if p == 1:
        norm = np.sum(np.absolute(x), axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(x * x, axis=axis, keepdims=True))
    return np.where(norm == 0, like(0, x), x / np.where(norm == 0, like(1, x), norm))


@operator("MeanVarianceNormalization")
def mean_variance_normalization(x: Any, *, axes: list[int] | None = None) -> Any:
    chosen = tuple(axes or (0, 2, 3))
    mean = np.mean(x, axis=chosen, keepdims=True)
    deviation = np.sqrt(np.mean(x * x, axis=chosen, keepdims=True) - mean * mean)
    return (x - mean) / (deviation + like(1e-9, x))


@operator("LRN")
def local_response(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    """Elements divided by a power of the sum of squares over neighbouring channels."""
    before, after = (size - 1) // 2, size // 2
    x = np.moveaxis(x, 1, -1)
    is_usual = min(alpha, beta, bias) >= 0 and beta <= MAX_BETA and size <= MAX_NEIGHBOURS
    if is_traced(x) and x.dtype in (np.float32, np.float64) and is_usual:
        return np.moveaxis(jk.local_response_norm(x, size, alpha, beta, bias), -1, 1)
    squares = np.pad(x * x, [*((0, 0),) * (x.ndim - 1), (before, after)])
    channels = x.shape[-1]
    total = squares[..., 0:channels]
    for i in range(1, size):
        total = total + squares[..., i : i + channels]
    base = like(bias, x) + like(alpha / size, x) * total
    return np.moveaxis(x / np.power(base, like(beta, x)), -1, 1)


@operator("Dropout", since=12, static=(1, 2))
def dropout(x: Any, ratio: Any = None, training: Any = None, *, seed: int | None = None, node: Any = None) -> Any:
    """What it is where nothing is trained: the input itself, and a mask of all elements."""
    from jitkernels.onnx.values import NotServedError

    if (
        training is not None
        and bool(np.asarray(training).reshape(-1)[0])
        and (ratio is None or float(np.asarray(ratio).reshape(-1)[0]))
    ):
        raise NotServedError("random numbers")
    return x, np.ones_like(x, dtype=bool)


@operator("Dropout")
def dropout_of_old(x: Any, *, ratio: float = 0.5, is_test: int = 0) -> Any:
    return x, np.ones_like(x)
