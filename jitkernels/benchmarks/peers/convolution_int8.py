"""Peers of CONV2D_INT8 and CONV2D_INT8_PACKED in NumPy: products in float64, which has all their sums."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from jitkernels.attrs.convolution_int8 import SIGN, Conv2DInt8Attr, Conv2DInt8PackedAttr
from jitkernels.attrs.schema.argument_binding import arguments_by_name
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.benchmarks.peers import Bound, OrdinaryCall, equivalent, ordinary_calls, peer
from jitkernels.benchmarks.peers.array_layouts import OF_ARRAYS, in_layouts, values
from jitkernels.benchmarks.peers.convolution import conv2d


@equivalent(Conv2DInt8Attr)
def conv2d_int8(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Quantize sums of products of floats."""
    return _quantized(arguments_by_name(Conv2DInt8Attr, arguments, named), out)


def _quantized(given: dict[str, Any], out: Any) -> Any:
    zero, own = given["x_zero"], {name: given[name] for name in ("stride", "padding", "dilation", "groups")}
    x = np.asarray(given["x"], np.float64) - (0.0 if zero is None else float(np.asarray(zero).reshape(-1)[0]))
    z = conv2d(x, np.asarray(given["w"], np.float64), given["bias"], **own).astype(np.int64).astype(np.int32)
    relu, y_dtype = given["activation"] == "relu", np.dtype(given["y_dtype"])
    result = z.astype(np.float32) if given["scale"] is None else z.astype(np.float32) * np.float32(given["scale"])
    result = z if y_dtype == np.int32 else result
    result = np.maximum(result, 0) if relu else result
    if y_dtype.itemsize == 1:
        limits = np.iinfo(y_dtype)
        shift = 0 if given["y_zero"] is None else int(np.asarray(given["y_zero"]).reshape(-1)[0])
        result = np.clip(np.rint(result) + shift, limits.min, limits.max)
    if out is None:
        return result.astype(y_dtype)
    np.copyto(out, result, casting="unsafe")
    return out


@peer(Conv2DInt8Attr)
def numpy_convolution(attr: Conv2DInt8Attr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    *given, y = rest
    flags = attr.shifted, attr.biased, attr.scaled, attr.y_shifted
    addends = [given.pop(0) if flag else None for flag in flags]
    own = {name: value for name, value in attr.fields().items() if name in Conv2DInt8Attr.options}
    return partial(conv2d_int8, x, w, *addends, out=y, **own)


@equivalent(Conv2DInt8PackedAttr)
def conv2d_int8_packed(*arguments: Any, out: Any = None, **named: Any) -> Any:
    """Compute CONV2D_INT8 with filters that are no longer packed, and sums that are theirs."""
    given = arguments_by_name(Conv2DInt8PackedAttr, arguments, named)
    filters, groups, panels = given["filters"], given["groups"], np.asarray(given["w"])
    words = panels[:, 1:].reshape(groups, -1, panels.shape[1] - 1, panels.shape[2] // 4, 4)
    columns = words.transpose(2, 4, 0, 1, 3).reshape(-1, groups, words.shape[1] * words.shape[3])
    w = columns[..., : filters // groups].reshape(given["kernel_height"], given["kernel_width"], -1, filters)
    return _quantized(given | {"w": w}, out)


@peer(Conv2DInt8PackedAttr)
def numpy_packed_convolution(attr: Conv2DInt8PackedAttr, x: AnyArray, w: AnyArray, *rest: AnyArray) -> Bound:
    filters, sums = attr.unpack(w)
    differences = filters.reshape(attr.terms, attr.filters).sum(0, dtype=np.int64) - sums  # none of packed filters
    given = list(rest)
    zero = int(given[0][0]) if attr.shifted else 0
    bias = given.pop(attr.shifted) if attr.biased else np.zeros(attr.filters, np.int64)
    given.insert(attr.shifted, bias + (zero + (SIGN if attr.x_dtype == "int8" else 0)) * differences)
    return numpy_convolution(Conv2DInt8Attr(**{**attr.fields(), "biased": True}), x, filters, *given)


@ordinary_calls(Conv2DInt8Attr)
def layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 2 + elements % 7
    x, w = values((2, 5, 6, channels), "int8").astype(np.uint8), values((3, 2, channels, 4), "int8")
    bias, scale = np.array([5, -7, 0, 100], np.int32), np.array([0.5, 0.25, 0.125, 1], np.float32)
    zero, y_zero = np.array([9], np.uint8), np.array([30], np.int16)
    byte: dict[str, Any] = {"y_dtype": "uint8"}
    yield OrdinaryCall("sums", (x, w))
    yield OrdinaryCall("zero point", (x, w, zero, bias))
    yield OrdinaryCall("signed", (x.astype(np.int8), w, None, bias))
    yield OrdinaryCall("floats", (x, w, zero, bias, scale), {"y_dtype": "float32"})
    yield OrdinaryCall("bytes", (x, w, zero, bias, scale, y_zero), byte)
    yield OrdinaryCall("relu", (x, w, zero, bias, scale, y_zero), {**byte, "activation": "relu"})
    yield OrdinaryCall("padded", (x, w, zero, bias, scale, y_zero, 1, 1), byte)
    yield OrdinaryCall("dilated", (x, w, zero), {"dilation": 2, "padding": 2})
    yield OrdinaryCall("depthwise", (x, values((3, 3, 1, channels), "int8")), {"groups": channels})
    yield OrdinaryCall("one image", (x[0], w, zero))
    yield OrdinaryCall("no image", (x[:0], w, zero))
    yield from in_layouts(x, w, label="both {}", layouts=OF_ARRAYS)
    yield OrdinaryCall("out", (x, w), {"out": np.zeros((2, 3, 5, 4), np.int32)})


@ordinary_calls(Conv2DInt8PackedAttr)
def packed_layers(elements: int) -> Iterator[OrdinaryCall]:
    channels = 4 * (1 + elements % 3)
    attr = Conv2DInt8PackedAttr(
        batch=2, height=5, width=6, channels=channels, kernel_height=3, kernel_width=2, filters=40
    )
    x, w = values((2, 5, 6, channels), "int8").astype(np.uint8), attr.pack(values((3, 2, channels, 40), "int8"))
    extents: dict[str, Any] = {"filters": 40, "kernel_height": 3, "kernel_width": 2}
    zero, bias = np.array([9], np.uint8), np.arange(40, dtype=np.int32)
    yield OrdinaryCall("plain", (x, w, zero, bias), extents)
    yield OrdinaryCall("signed", (x.astype(np.int8), w), extents)
    yield OrdinaryCall("relu", (x, w, zero), {**extents, "activation": "relu", "padding": 1})
    yield OrdinaryCall("one image", (x[0], w, zero), extents)
