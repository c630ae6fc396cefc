"""Convolutions and pooling, in torch's order of axes: batch, channels, then space.

They compute on channels-last memory, as `jitkernels.onnx` does: an array of channels first is the transposed view of
such an array, and the transposes of layers that follow one another cancel in the compiler.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.kernels.layers import channels_first, images
from jitkernels.compiler.capture.kernels.vjp.convolution_vjp import exchanged, images_cotangent
from jitkernels.compiler.ir.symbolic_dims import same
from jitkernels.torch.array_values import like
from jitkernels.torch.aten_table import operator
from jitkernels.torch.operators.normalization import batch_norm_inference


def require_images(x: Any) -> None:
    """Raise NotImplementedError for what the kernels of images do not take."""
    if x.ndim > 4 or x.dtype.kind != "f":
        raise NotImplementedError(f"convolutions of {x.ndim - 2} dimensions, or of {x.dtype}")


def _filters(weight: Any) -> Any:
    """Filters as CONV2D takes them: height, width, channels, filters."""
    weight = weight if weight.ndim == 4 else np.expand_dims(weight, 2)
    count, depth, high, wide = weight.shape
    reversed_axes = _reversed(np.reshape(weight, (count, depth, high * wide)))
    return np.reshape(reversed_axes, (high, wide, depth, count))


def _torch_filters(filters: Any, dimensions: int) -> Any:
    high, wide, depth, count = filters.shape
    weight = np.reshape(_reversed(np.reshape(filters, (high * wide, depth, count))), (count, depth, high, wide))
    return weight if dimensions == 4 else np.squeeze(weight, 2)


def _reversed(x: Any) -> Any:
    """Three axes in reverse, by two transposes of matrices, which are several times as fast as the strided copy.

    The first exchanges the inner axes; to collapse them with the outer one needs it in memory.
    """
    first, second, third = x.shape
    return np.transpose(np.reshape(np.transpose(x, (0, 2, 1)), (first, third * second)))


def _pair(values: int | Sequence[int], first: int, dimensions: int) -> tuple[int, int]:
    """Numbers for height and width: one number is for all dimensions, and `first` is for a height that torch lacks."""
    numbers = tuple(map(int, values)) if isinstance(values, Sequence) else (int(values),)
    numbers = numbers * dimensions if len(numbers) == 1 else numbers
    return (first, numbers[0]) if dimensions == 1 else (numbers[0], numbers[1])


def _options(dimensions: int, stride: Any, padding: Any, dilation: Any, groups: int) -> dict[str, Any]:
    sides = _pair(padding, 0, dimensions)
    return {
        "stride": _pair(stride, 1, dimensions), "padding": tuple((side, side) for side in sides),
        "dilation": _pair(dilation, 1, dimensions), "groups": groups,
    }  # fmt: skip


def _is_product(weight: Any, options: dict[str, Any]) -> bool:
    """Whether a convolution multiplies pixels by a matrix that is no constant: those are packed as filters."""
    is_plain = options["stride"] == (1, 1) and options["padding"] == ((0, 0), (0, 0)) and options["groups"] == 1
    return type(weight) is Traced and is_plain and all(same(extent, 1) for extent in weight.view.shape[2:])


def _matrix(weight: Any) -> Any:
    """The matrix of filters of one pixel: filters by channels."""
    return np.squeeze(weight, tuple(range(2, weight.ndim)))


@operator("convolution.default")
def convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
    groups: int,
) -> Any:  # fmt: skip
    require_images(x)
    options = _options(x.ndim - 2, stride, padding, dilation, groups)
    if not transposed and _is_product(weight, options):
        y = np.matmul(images(x), np.transpose(_matrix(weight)))
        return channels_first(y if bias is None else y + bias, x.ndim)
    if not transposed:
        return channels_first(jk.conv2d(images(x), _filters(weight), bias, **options), x.ndim)
    filters = exchanged(_filters(weight), groups)
    more = _pair(output_padding, 0, x.ndim - 2)
    result = jk.conv2d_transpose(images(x), filters, bias, output_padding=more, **options)
    return channels_first(result, x.ndim)


@operator("jitkernels.fused_convolution")
def fused_convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int,
    normalization: Sequence[Any] | None, residual: Any, activation: Any,
) -> Any:  # fmt: skip
    """A convolution whose filters and bias contain a batch norm, plus a residual, and an activation, as one kernel."""
    require_images(x)
    if normalization is not None and type(weight) is Traced:  # the filters are no constants
        y = convolution(x, weight, bias, stride, padding, dilation, False, (0,), groups)
        y = batch_norm_inference(y, *normalization[:4], 0.0, normalization[4])[0]
        y = y if residual is None else y + residual
        return np.maximum(y, like(0, y)) if activation == "relu" else y
    if normalization is not None:
        scale, shift, mean, variance, eps = normalization
        factor = like(1, variance) / np.sqrt(variance + like(eps, variance))
        factor = factor if scale is None else factor * scale
        term = -mean * factor if bias is None else (bias - mean) * factor
        bias = term if shift is None else term + shift
        weight = weight * np.reshape(factor, (-1, *(1,) * (weight.ndim - 1)))
    added = None if residual is None else images(residual)
    options = _options(x.ndim - 2, stride, padding, dilation, groups)
    result = jk.conv2d(images(x), _filters(weight), bias, added, activation=activation, **options)
    return channels_first(result, x.ndim)


@operator("convolution_backward.default")
def convolution_backward(
    dy: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
    output_padding: Any, groups: int, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    """The cotangents of images, filters and bias, each a convolution."""
    require_images(x)
    options = _options(x.ndim - 2, stride, padding, dilation, groups)
    gradient, pixels = images(dy), images(x)
    db = np.sum(dy, axis=(0, *range(2, dy.ndim))) if output_mask[2] else None
    dx = dw = None
    if not transposed and _is_product(weight, options):
        if output_mask[0]:
            dx = channels_first(np.matmul(gradient, _matrix(weight)), x.ndim)
        if output_mask[1]:
            rows = (np.reshape(one, (-1, one.shape[-1])) for one in (gradient, pixels))
            dw = np.reshape(np.matmul(np.transpose(next(rows)), next(rows)), weight.shape)
        return dx, dw, db
    filters = _filters(weight)
    kernel = int(filters.shape[0]), int(filters.shape[1])
    if transposed:
        more = _pair(output_padding, 0, x.ndim - 2)
        if any(added >= step for added, step in zip(more, options["stride"], strict=True)):  # room for more windows
            gradient, options["padding"] = _windows_of(gradient, pixels, kernel, options)
        if output_mask[0]:
            dx = channels_first(jk.conv2d(gradient, filters, **options), x.ndim)
        if output_mask[1]:
            dw = _torch_filters(jk.conv2d_backward_weights(gradient, pixels, kernel, **options), weight.ndim)
    else:
        if output_mask[0]:
            dx = channels_first(images_cotangent(gradient, filters, pixels, kernel, options), x.ndim)
        if output_mask[1]:
            dw = _torch_filters(jk.conv2d_backward_weights(pixels, gradient, kernel, **options), weight.ndim)
    return dx, dw, db


def _windows_of(gradient: Any, pixels: Any, kernel: Any, options: Any) -> tuple[Any, Any]:
    """The cotangent of what a transposed convolution gave, and its padding, with one window for each of `pixels`."""
    padding, kept = [], []
    for axis in (0, 1):
        low, extent = options["padding"][axis][0], int(gradient.shape[1 + axis])
        steps, span = int(pixels.shape[1 + axis]) - 1, options["dilation"][axis] * (kernel[axis] - 1) + 1
        high = steps * options["stride"][axis] + span - low - extent
        padding.append((low, max(high, 0)))
        kept.append(slice(0, extent + min(high, 0)))
    return gradient[:, kept[0], kept[1]], tuple(padding)


def _window(kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, dimensions: int = 2) -> Any:
    sides = _pair(padding, 0, dimensions)
    return {
        "window": _pair(kernel, 1, dimensions), "stride": _pair(stride or kernel, 1, dimensions),
        "dilation": _pair(dilation, 1, dimensions), "padding": tuple((side, side) for side in sides),
        "ceil_mode": ceil_mode,
    }  # fmt: skip


def _batched(x: Any, dimensions: int) -> Any:
    """An array with a batch, which torch allows to be missing."""
    return x if x.ndim == dimensions else np.expand_dims(x, 0)


@operator("jitkernels.max_pool2d")
def max_pool2d(x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Any:
    """The maxima alone, where nothing reads their places."""
    y = jk.max_pool2d(images(_batched(x, 4)), **_window(kernel, stride, padding, dilation, ceil))
    return _as_before(channels_first(y, 4), x.ndim)


def _as_before(images: Any, dimensions: int) -> Any:
    """Images without the batch that `_batched` added. A reshape would copy them to C order."""
    return images if dimensions == 4 else np.squeeze(images, 0)


@operator("jitkernels.max_pool2d_backward")
def max_pool2d_backward(
    dy: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Any:
    """The cotangent of x from x itself: nothing keeps the places of maxima."""
    options = _window(kernel, stride, padding, dilation, ceil)
    dx = jk.max_pool2d_backward(images(_batched(x, 4)), images(_batched(dy, 4)), **options)
    return _as_before(channels_first(dx, 4), x.ndim)


@operator("avg_pool2d.default")
def avg_pool2d(
    x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    options = _window(kernel, stride, padding, 1, ceil_mode)
    if not divisor_override:
        return _averaged(x, options, count_include_pad)
    sides, count = _whole_windows(x, options), math.prod(options["window"])
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + sides)
    whole = {**options, "padding": ((0, 0), (0, 0)), "ceil_mode": False}
    return _averaged(x, whole, True) * like(count / divisor_override, x)


@operator("avg_pool1d.default")
def avg_pool1d(
    x: Any, kernel: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True
) -> Any:
    return _averaged(x, _window(kernel, stride, padding, 1, ceil_mode, 1), count_include_pad)


def _averaged(x: Any, options: Any, count_include_pad: bool) -> Any:
    if x.dtype.kind != "f":
        raise NotImplementedError("averages of ints, which torch rounds toward zero")
    y = jk.avg_pool2d(images(_batched(x, 4)), count_include_pad=count_include_pad, **options)
    shape = (*x.shape[:-2], *y.shape[1:3])
    return np.reshape(channels_first(y, 4), shape) if x.ndim == 2 else _as_before(channels_first(y, 4), x.ndim)


def _whole_windows(x: Any, options: Any) -> list[tuple[int, int]]:
    """The zeros around images with which every window is whole."""
    sides = []
    for axis in (0, 1):
        window, stride, (low, high) = options["window"][axis], options["stride"][axis], options["padding"][axis]
        rest = int(x.shape[x.ndim - 2 + axis]) + low + high - window
        steps = -(-rest // stride) if options["ceil_mode"] else rest // stride
        steps -= options["ceil_mode"] and steps * stride >= rest + window - high  # which begins in the padding
        sides.append((low, high + max(steps * stride - rest, 0)))
    return sides


@operator("_adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(x: Any, output_size: Sequence[int]) -> Any:
    """Means over the parts of images that belong to each result."""
    for axis, count in zip((x.ndim - 2, x.ndim - 1), output_size, strict=True):
        extent = int(x.shape[axis])
        lead = (slice(None),) * axis
        if count == 1:
            x = np.mean(x, axis=axis, keepdims=True)
        elif extent % count == 0:
            parts = np.reshape(x, (*x.shape[:axis], count, extent // count, *x.shape[axis + 1 :]))
            x = parts[(*lead, slice(None), 0)] if extent == count else np.mean(parts, axis=axis + 1)
        else:
            ends = [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]
            x = np.stack([np.mean(x[(*lead, slice(*end))], axis=axis) for end in ends], axis=axis)
    return x


@operator("_adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool2d_backward(dy: Any, x: Any) -> Any:
    """The cotangents, divided by the sizes of parts, added where parts overlap."""
    for axis in (x.ndim - 2, x.ndim - 1):
        count, extent = int(dy.shape[axis]), int(x.shape[axis])
        shape = (*dy.shape[:axis], extent, *dy.shape[axis + 1 :])
        if count == 1:
            dy = np.broadcast_to(dy * like(1 / extent, dy), shape)
        elif extent % count == 0:
            dy = np.repeat(dy * like(count / extent, dy), extent // count, axis=axis)
        else:
            lead = (slice(None),) * axis
            total = np.zeros(shape, dy.dtype)
            for i in range(count):
                begin, end = i * extent // count, -(-(i + 1) * extent // count)
                total[(*lead, slice(begin, end))] += dy[(*lead, slice(i, i + 1))] * like(1 / (end - begin), dy)
            dy = total
    return dy


@operator("upsample_nearest2d.vec", "upsample_nearest2d.default")
def upsample_nearest2d(x: Any, output_size: Any, *scales: Any, result: Any = None) -> Any:
    """The nearest pixel below: ``floor(i / scale)``."""
    factors = scales[0] if scales and isinstance(scales[0], Sequence) else scales
    for place, axis in enumerate((2, 3)):
        extent, count = int(x.shape[axis]), result.shape[axis]
        factor = factors[place] if factors and factors[place] else None
        step = 1 / factor if factor else extent / count
        index = np.minimum((np.arange(int(count)) * np.float32(step)).astype(np.int64), extent - 1)
        x = np.take(x, index, axis=axis)
    return x
