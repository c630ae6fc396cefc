"""The oracles of CONV2D_INT8 and CONV2D_INT8_PACKED: tap by tap, in integers of Python's width."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


def _sums(attr: Any, x: AnyArray, w: AnyArray, zero: int) -> AnyArray:
    """Return the sums of (x - zero) * w, padding as zeros."""
    (top, bottom), (left, right) = attr.padding
    padded = np.pad(x.astype(np.int64) - zero, ((0, 0), (top, bottom), (left, right), (0, 0)))
    (down, along), (skip, over) = attr.stride, attr.dilation
    own, per = attr.filters // attr.groups, attr.channels // attr.groups
    sums = np.zeros((attr.batch, attr.out_height, attr.out_width, attr.filters), np.int64)
    for a in range(attr.kernel_height):
        for b in range(attr.kernel_width):
            seen = padded[:, a * skip :: down, b * over :: along][:, : attr.out_height, : attr.out_width]
            for group in range(attr.groups):
                parts = seen[..., group * per : group * per + per]
                filters = slice(group * own, group * own + own)
                sums[..., filters] += parts @ w[a, b][:, filters].astype(np.int64)
    return sums


def _result(attr: Any, z: AnyArray, bias: Any, scale: Any, y_zero: Any) -> list[AnyArray]:
    """Wrap to 32 bits, and quantize: a product is rounded once, halves to even."""
    z = (z if bias is None else z + bias).astype(np.int32)
    relu = attr.activation == "relu"
    if attr.y_dtype == "int32":
        return [np.where(relu & (z < 0), 0, z).astype(np.int32)]
    value = z.astype(np.float32)
    if scale is not None:
        value = value * scale.astype(np.float32)
    if attr.y_dtype == "float32":
        return [np.where(relu & (value < 0), np.float32(0), value).astype(WIDE)]
    limits, zero = np.iinfo(attr.y_dtype), 0 if y_zero is None else int(y_zero[0])
    known = np.clip(np.where(np.isnan(value), -np.inf, value), -1e6, 1e6).astype(np.float64)
    nearest = np.floor(known)
    rest = known - nearest
    steps = nearest + ((rest > 0.5) | ((rest == 0.5) & (nearest % 2 != 0)))
    steps = np.maximum(steps, 0) if relu else steps
    return [np.clip(steps + zero, limits.min, limits.max).astype(attr.y_dtype)]


@oracle
def conv2d_int8(
    attr: Any, x: AnyArray, w: AnyArray, x_zero: Any = None, bias: Any = None, scale: Any = None, y_zero: Any = None
) -> list[AnyArray]:
    z = _sums(attr, x, w, 0 if x_zero is None else int(x_zero[0]))
    return _result(attr, z, bias, scale, y_zero)


@oracle
def conv2d_int8_packed(
    attr: Any, x: AnyArray, w: AnyArray, x_zero: Any = None, bias: Any = None, scale: Any = None, y_zero: Any = None
) -> list[AnyArray]:
    own = attr.filters // attr.groups
    panels, depth = -(-own // 32), 4 * (w.shape[1] - 1)
    plain, sums = np.zeros((depth, attr.filters), np.int64), np.zeros(attr.filters, np.int64)
    for f in range(attr.filters):
        panel = w[f // own * panels + f % own // 32]
        lane = f % own % 32
        plain[:, f] = panel[1:, 4 * lane : 4 * lane + 4].reshape(-1)
        sums[f] = panel[0].view(np.int32)[lane]
    weights = plain.reshape(attr.kernel_height, attr.kernel_width, attr.channels // attr.groups, attr.filters)
    zero, shift = 0 if x_zero is None else int(x_zero[0]), 128 if attr.x_dtype == "int8" else 0
    z = _sums(attr, x, weights, zero) + (zero + shift) * (plain.sum(0) - sums)
    return _result(attr, z, bias, scale, y_zero)
