"""Convolutions of 8-bit integers: ConvInteger, and QLinearConv, which models with QDQ pairs around Conv become too."""

from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.quantize import BYTES
from jitkernels.compiler.capture.kernels.layers import channels_first, images
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators.convolution import Window, convolved, options, space_of, window_of
from jitkernels.onnx.operators.quantization import quantized
from jitkernels.onnx.values import NotServedError, constant, is_constant, is_traced, like


def _of_channels(value: Any, ndim: int) -> Any:
    """Numbers of filters, in a shape that broadcasts to their results; a number stays."""
    return np.reshape(value, (-1, *(1,) * (ndim - 2))) if getattr(value, "ndim", 0) else value


def _int8_filters(w: Any, zero: Any) -> Any:
    """Filters minus their zero points in int8; None where these do not fit, or are not known while code is made."""
    if is_traced(zero):
        return None
    if w.dtype == np.int8 and (zero is None or not np.any(zero)):
        return w
    if is_traced(w):
        return None
    shift = 0 if zero is None else np.reshape(np.asarray(zero, np.int16), (-1, *(1,) * (w.ndim - 1)))
    whole = np.asarray(w).astype(np.int16) - shift
    limits = np.iinfo(np.int8)
    fits = not whole.size or (whole.min() >= limits.min and whole.max() <= limits.max)
    return constant(whole, np.int8) if fits else None


def _by_int8_kernel(x: Any, filters: Any, window: Window, x_zero: Any, **more: Any) -> Any:
    """The kernel CONV2D_INT8, on images with channels last and filters as it wants them."""
    w = filters if filters.ndim == 4 else np.expand_dims(filters, 2)
    zero = None if x_zero is None else np.reshape(x_zero, (1,))
    result = jk.conv2d_int8(images(x), np.transpose(w, (2, 3, 1, 0)), zero, **more, **options(window))
    return channels_first(result, x.ndim)


def _is_served(x: Any, x_zero: Any, window: Window) -> bool:
    """Whether the kernel takes such images: of one or two dimensions, with one zero point. Raises ModelError."""
    window.results(space_of(x))
    is_image = is_traced(x) and len(window.kernel) in (1, 2) and min((*window.begin, *window.end)) >= 0
    is_single = x_zero is None or getattr(x_zero, "ndim", 0) == 0 or x_zero.shape == (1,)
    return bool(is_image and is_single and x.dtype.name in BYTES)


def _window_of(x: Any, w: Any, node: Any) -> Window:
    return window_of(node.attributes, tuple(int(extent) for extent in w.shape[2:]), space_of(x))


def _exact_sums(x: Any, w: Any, x_zero: Any, w_zero: Any, window: Window, group: int) -> Any:
    """The sums in int32, zero points subtracted first: padding stands for the zero point."""
    if _is_served(x, x_zero, window) and is_constant(w) and is_constant(w_zero) and w.dtype.name in BYTES:
        return _by_window_sums(x, w, x_zero, w_zero, window, group)
    wide = x.astype(np.int32) if x_zero is None else x.astype(np.int32) - x_zero.astype(np.int32)
    filters = w.astype(np.int32)
    if w_zero is not None:
        zero = w_zero.astype(np.int32)
        zero = np.reshape(zero, (-1, *(1,) * (w.ndim - 1))) if getattr(zero, "ndim", 0) else zero
        filters = filters - zero
    return convolved(wide, filters, None, window, group)


def _by_window_sums(x: Any, w: Any, x_zero: Any, w_zero: Any, window: Window, group: int) -> Any:
    """The same of filters whose differences from zero points take nine bits: these are subtracted window by window."""
    shift = 0 if w.dtype == np.int8 else 128
    filters = constant(np.asarray(w).astype(np.int16) - shift, np.int8)
    ones = constant(np.ones((group, *w.shape[1:])), np.int8)
    total, sums = (_by_int8_kernel(x, one, window, x_zero, groups=group) for one in (filters, ones))
    if group > 1:
        sums = np.repeat(sums, int(w.shape[0]) // group, axis=1)
    zeros = constant(np.asarray(0 if w_zero is None else w_zero, np.int32) - shift, np.int32)
    return total - sums * _of_channels(zeros, x.ndim)


@operator("ConvInteger")
def conv_integer(x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, *, group: int = 1, node: Any = None) -> Any:
    window = _window_of(x, w, node)
    filters = _int8_filters(w, w_zero) if _is_served(x, x_zero, window) else None
    if filters is None:
        return _exact_sums(x, w, x_zero, w_zero, window, group)
    return _by_int8_kernel(x, filters, window, x_zero, groups=group)


@operator("QLinearConv")
def quantized_conv(
    x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, *rest: Any, group: int = 1, node: Any = None
) -> Any:
    """QLinearConv, with an activation where `fuse_quantized_convolutions` has found one; floats without a scale."""
    w_zero, scale, zero, bias = (*rest, None)[:4]
    if not {x.dtype.name, w.dtype.name} <= {*BYTES}:
        raise NotServedError("elements that NumPy lacks")
    factor = x_scale.astype(np.float32) * w_scale.astype(np.float32)
    factor = factor if scale is None else factor / scale.astype(np.float32)
    activation = node.attributes.get("activation", "identity")
    window = _window_of(x, w, node)
    filters = _int8_filters(w, w_zero) if _is_served(x, x_zero, window) else None
    if filters is not None:
        factors = np.broadcast_to(np.reshape(factor, (-1,)), (int(w.shape[0]),))
        factors = constant(factors) if is_constant(factors) else factors
        y_dtype = "float32" if scale is None else zero.dtype.name
        y_zero = None if scale is None else np.reshape(zero.astype(np.int16), (1,))
        more = {"bias": bias, "scale": factors, "y_zero": y_zero, "y_dtype": y_dtype}
        return _by_int8_kernel(x, filters, window, x_zero, groups=group, activation=activation, **more)
    total = _exact_sums(x, w, x_zero, w_zero, window, group)
    total = total if bias is None else total + _of_channels(bias, x.ndim)
    result = total.astype(np.float32) * _of_channels(factor, x.ndim)
    result = np.maximum(result, like(0, result)) if activation == "relu" else result
    return result if scale is None else quantized(result, np.float32(1), zero, zero.dtype)
