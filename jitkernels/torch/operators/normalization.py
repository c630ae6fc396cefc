"""Softmax, and normalizations by the moments of batches, groups and rows, with their gradients."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.kernels.layers import channels_first, images, of_channels, standardized
from jitkernels.torch.array_values import highest, like
from jitkernels.torch.aten_table import operator


def _shifted(x: Any, dim: int) -> Any:
    return x - highest(x, (dim,))


@operator("_softmax.default", "softmax.int", promotes="tensors")
def softmax(x: Any, dim: int, half_to_float: Any = False) -> Any:
    exponentials = np.exp(_shifted(x, dim)) if x.ndim else np.exp(x - x)
    return exponentials / np.sum(exponentials, axis=dim, keepdims=True) if x.ndim else exponentials


@operator("_log_softmax.default", "log_softmax.int", promotes="tensors")
def log_softmax(x: Any, dim: int, half_to_float: Any = False) -> Any:
    if not x.ndim:
        return x - x
    shifted = _shifted(x, dim)
    return shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))


@operator("_softmax_backward_data.default")
def softmax_backward(dy: Any, y: Any, dim: int, input_dtype: Any = None) -> Any:
    product = dy * y
    return product - y * (np.sum(product, axis=dim, keepdims=True) if y.ndim else product)


@operator("_log_softmax_backward_data.default")
def log_softmax_backward(dy: Any, y: Any, dim: int, input_dtype: Any = None) -> Any:
    return dy - np.exp(y) * (np.sum(dy, axis=dim, keepdims=True) if y.ndim else dy)


def _affine(x: Any, weight: Any, bias: Any, mean: Any, inverse: Any) -> Any:
    """``(x - mean) * inverse * weight + bias`` by a factor and a term of each channel, on channels last if images."""
    factor = inverse if weight is None else inverse * weight
    term = -mean * factor if bias is None else bias - mean * factor
    if x.ndim == 4:
        return np.transpose(np.transpose(x, (0, 2, 3, 1)) * factor + term, (0, 3, 1, 2))
    return x * of_channels(factor, x.ndim) + of_channels(term, x.ndim)


@operator("_native_batch_norm_legit_no_training.default")
def batch_norm_inference(x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float) -> Any:
    inverse = like(1, variance) / np.sqrt(variance + like(eps, variance))
    empty = np.zeros((0,), x.dtype)
    return _affine(x, weight, bias, mean, inverse), empty, empty


def _batch_moments(x: Any) -> tuple[Any, Any, Any]:
    """Mean and variance of each channel, and the number of elements of one."""
    axes = (0, *range(2, x.ndim))
    mean = np.mean(x, axis=axes)
    centred = x - of_channels(mean, x.ndim)
    return mean, np.mean(centred * centred, axis=axes), math.prod(x.shape[axis] for axis in axes)


@operator("_native_batch_norm_legit_functional.default")
def batch_norm_functional(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool, momentum: float, eps: float
) -> Any:
    """With the moments of the batch in training, and the new running moments; else with the running ones."""
    if not training:
        result, _, _ = batch_norm_inference(x, weight, bias, mean, variance, momentum, eps)
        empty = np.zeros((0,), x.dtype)
        return result, empty, empty, mean, variance
    own_mean, own_variance, count = _batch_moments(x)
    inverse = like(1, x) / np.sqrt(own_variance + like(eps, x))
    rate, rest = like(momentum, x), like(1 - momentum, x)
    unbiased = own_variance * (count / max(count - 1, 1)) if type(count) is int else own_variance * count / (count - 1)
    new_mean, new_variance = mean * rest + own_mean * rate, variance * rest + unbiased.astype(x.dtype) * rate
    return _affine(x, weight, bias, own_mean, inverse), own_mean, inverse, new_mean, new_variance


@operator("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(x: Any, weight: Any, bias: Any, training: bool, momentum: float, eps: float) -> Any:
    mean, variance, _ = _batch_moments(x)
    inverse = like(1, x) / np.sqrt(variance + like(eps, x))
    return _affine(x, weight, bias, mean, inverse), mean, inverse


@operator("native_batch_norm_backward.default")
def batch_norm_backward(
    dy: Any, x: Any, weight: Any, mean: Any, variance: Any, saved_mean: Any, saved_inverse: Any, train: bool,
    eps: float, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    """The cotangents of x, weight and bias. In training the moments depend on x, too."""
    dimensions, is_images = x.ndim, x.ndim == 4
    if is_images:
        x, dy = images(x), images(dy)
    axes = (0, 1, 2) if is_images else (0, *range(2, dimensions))

    def spread(values: Any) -> Any:
        return values if is_images else of_channels(values, dimensions)

    if not train:
        saved_mean, saved_inverse = mean, like(1, variance) / np.sqrt(variance + like(eps, variance))
    count = math.prod(x.shape[axis] for axis in axes)
    centred = x - spread(saved_mean)
    sums = np.sum(dy, axis=axes)
    products = np.sum(dy * centred, axis=axes)
    factor = saved_inverse if weight is None else saved_inverse * weight
    dx = dy
    if train:
        slope = products * saved_inverse * saved_inverse / count
        dx = dy - spread((sums / count).astype(x.dtype))
        dx = dx - centred * spread(slope.astype(x.dtype))
    dx = dx * spread(factor)
    parts = (channels_first(dx, 4) if is_images else dx, products * saved_inverse, sums)
    return tuple(part if wanted else None for part, wanted in zip(parts, output_mask, strict=True))


@operator("native_layer_norm.default")
def layer_norm(x: Any, normalized_shape: Sequence[Any], weight: Any, bias: Any, eps: float) -> Any:
    normal, mean, inverse = standardized(x, tuple(range(x.ndim - len(normalized_shape), x.ndim)), eps)
    result = normal if weight is None else normal * weight
    return (result if bias is None else result + bias), mean, inverse


@operator("native_layer_norm_backward.default")
def layer_norm_backward(
    dy: Any, x: Any, normalized_shape: Sequence[Any], mean: Any, inverse: Any, weight: Any, bias: Any,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    inner = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    outer = tuple(range(x.ndim - len(normalized_shape)))
    normal = (x - mean) * inverse
    scaled = dy if weight is None else dy * weight
    slope = np.mean(scaled * normal, axis=inner, keepdims=True)
    dx = (scaled - np.mean(scaled, axis=inner, keepdims=True) - normal * slope) * inverse
    has_weight, has_bias = output_mask[1] and weight is not None, output_mask[2] and bias is not None
    dweight = np.sum(dy * normal, axis=outer) if has_weight else None
    return (dx if output_mask[0] else None), dweight, (np.sum(dy, axis=outer) if has_bias else None)


@operator("native_group_norm.default")
def group_norm(x: Any, weight: Any, bias: Any, n: Any, c: Any, hxw: Any, group: int, eps: float) -> Any:
    groups = np.reshape(x, (n, group, c // group * hxw))
    normal, mean, inverse = standardized(groups, (2,), eps)
    result = np.reshape(normal, x.shape)
    result = result if weight is None else result * of_channels(weight, x.ndim)
    result = result if bias is None else result + of_channels(bias, x.ndim)
    return result, np.squeeze(mean, 2), np.squeeze(inverse, 2)


@operator("_fused_rms_norm.default")
def rms_norm(x: Any, normalized_shape: Sequence[Any], weight: Any, eps: float | None) -> Any:
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    eps = float(np.finfo(x.dtype).eps) if eps is None else eps
    inverse = like(1, x) / np.sqrt(np.mean(x * x, axis=axes, keepdims=True) + like(eps, x))
    result = x * inverse
    return (result if weight is None else result * weight), inverse
