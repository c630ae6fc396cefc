"""Transforms of signals: Fourier transforms as products with matrices of sines, windows, mel weights."""

import math
from typing import Any

import numpy as np

from jitkernels.errors import ModelError
from jitkernels.onnx.element_types import dtype_of
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError, axis_of, concrete_ints, constant, like, limit, number

MAX_POINTS = 4096
"""Most points of a transform by a matrix of all of them."""


def _waves(points: int, results: int, dtype: Any, sign: int) -> tuple[Any, Any]:
    """The matrices of cosines and sines."""
    limit((points, results))
    if points > MAX_POINTS:
        raise NotServedError(f"a transform of {points} points")
    angles = 2 * np.pi * (np.outer(np.arange(results), np.arange(points)) % points) / points
    return constant(np.cos(angles), dtype), constant(sign * np.sin(angles), dtype)


def transform(x: Any, points: int, axis: int, *, inverse: bool, onesided: bool) -> Any:
    """The Fourier transform along an axis of an array whose last axis is real and imaginary parts."""
    extent = int(x.shape[axis])
    x = np.moveaxis(x, axis, -2)
    x = x[..., :points, :] if extent > points else x
    if extent < points:
        x = np.pad(x, [*((0, 0),) * (x.ndim - 2), (0, points - extent), (0, 0)])
    real = x[..., 0]
    imaginary = x[..., 1] if int(x.shape[-1]) == 2 else None
    results = points // 2 + 1 if onesided and not inverse else points
    cosines, sines = _waves(points, results, x.dtype, 1 if inverse else -1)
    real_part, imaginary_part = real @ cosines.T, real @ sines.T
    if imaginary is not None:
        real_part, imaginary_part = real_part - imaginary @ sines.T, imaginary_part + imaginary @ cosines.T
    result = np.stack([real_part, imaginary_part], axis=-1)
    result = result / like(points, x) if inverse else result
    return np.moveaxis(result, -2, axis)


@operator("DFT", since=20, static=(1, 2))
def fourier(x: Any, points: Any = None, axis: Any = None, *, inverse: int = 0, onesided: int = 0) -> Any:
    position = axis_of(-2 if axis is None else concrete_ints(axis)[0], x.ndim)
    if inverse and onesided:
        return _real_inverse(x, None if points is None else concrete_ints(points)[0], position)
    count = int(x.shape[position]) if points is None else concrete_ints(points)[0]
    return transform(x, count, position, inverse=bool(inverse), onesided=bool(onesided))


@operator("DFT", static=(1,))
def fourier_by_attribute(x: Any, points: Any = None, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Any:
    return fourier(x, points, constant(axis, np.int64), inverse=inverse, onesided=onesided)


def _real_inverse(x: Any, points: int | None, axis: int) -> Any:
    """The real signal of a half spectrum: the other half is its mirror image."""
    extent = int(x.shape[axis])
    points = 2 * (extent - 1) if points is None else points
    half = points // 2 + 1
    x = np.moveaxis(x, axis, -2)
    x = x[..., :half, :]
    if extent < half:
        x = np.pad(x, [*((0, 0),) * (x.ndim - 2), (0, half - extent), (0, 0)])
    cosines, sines = _waves(points, half, x.dtype, 1)
    scale = np.full((half, 1), 2.0)
    scale[0] = 1
    if points % 2 == 0:
        scale[-1] = 1
    factor = constant(scale / points, x.dtype)
    signal = x[..., 0] @ (cosines * factor) - x[..., 1] @ (sines * factor)
    return np.expand_dims(np.moveaxis(signal, -1, axis), -1)


@operator("STFT", static=(1, 3))
def short_time_fourier(x: Any, step: Any, window: Any = None, length: Any = None, *, onesided: int = 1) -> Any:
    hop = concrete_ints(step)[0]
    size = int(window.shape[0]) if length is None else concrete_ints(length)[0]
    if hop < 1:
        raise ModelError(f"frames {hop} samples apart")
    signal = x if x.ndim == 3 else np.expand_dims(x, -1)
    count = (int(signal.shape[1]) - size) // hop + 1
    frames = np.stack([signal[:, i * hop : i * hop + size] for i in range(count)], axis=1)
    if window is not None:
        frames = frames * np.reshape(window, (-1, 1))
    return transform(frames, size, 2, inverse=False, onesided=bool(onesided))


def _window(name: str, coefficients: tuple[float, ...]) -> None:
    def compute(size: Any, *, output_datatype: int = 1, periodic: int = 1) -> Any:
        count = int(number(size))
        limit((count,))
        angles = 2 * np.pi * np.arange(count) / (count if periodic else count - 1)
        values = sum(value * np.cos(k * angles) for k, value in enumerate(coefficients))
        return constant(values, dtype_of(output_datatype))

    operator(name, static=(0,))(compute)


_window("HannWindow", (0.5, -0.5))
_window("HammingWindow", (25 / 46, -21 / 46))
_window("BlackmanWindow", (0.42, -0.5, 0.08))


def _mel(hertz: float) -> float:
    return 2595 * math.log10(1 + hertz / 700)


@operator("MelWeightMatrix", static=(0, 1, 2, 3, 4))
def mel_weights(bins: Any, length: Any, rate: Any, low: Any, high: Any, *, output_datatype: int = 1) -> Any:
    """Triangles over the frequencies of a transform, as far apart as tones sound."""
    count, points = int(number(bins)), int(number(length))
    spectrum = points // 2 + 1
    limit((count + 2, spectrum))
    begin, end = _mel(number(low)), _mel(number(high))
    mels = np.arange(count + 2) * ((end - begin) / (count + 2)) + begin
    edges = ((points + 1) * (700 * (np.power(10, mels / 2595) - 1)) // number(rate)).astype(int)
    result = np.zeros((spectrum, count))
    for i in range(count):
        left, centre, right = edges[i : i + 3]
        if centre == left:
            result[centre, i] = 1
        else:
            for j in range(left, centre + 1):
                result[j, i] = (j - left) / (centre - left)
        for j in range(centre, right):
            result[j, i] = (right - j) / (right - centre)
    return constant(result, dtype_of(output_datatype))
