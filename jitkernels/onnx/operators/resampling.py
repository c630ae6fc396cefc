"""Resizing: along each axis a matrix of weights, which sizes and attributes determine."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.attrs.resize import COORDINATES, CUBIC
from jitkernels.compiler.capture.kernels.layers import channels_first, images
from jitkernels.errors import ModelError
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import (
    axis_of,
    broadcast,
    concrete_array,
    concrete_ints,
    constant,
    is_traced,
    like,
    limit,
    numbers,
)


def _coordinates(mode: str, extent: int, size: int, scale: float, roi: tuple[float, float]) -> Any:
    """For each result along an axis where it lies among the elements."""
    y, width = np.arange(size, dtype=np.float64), scale * extent
    if mode == "align_corners":
        return np.zeros(size) if width == 1 else y * (extent - 1) / (width - 1)
    if mode == "asymmetric":
        return y / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if width == 1:
            return np.full(size, (end - start) * (extent - 1) / 2) + start * (extent - 1)
        return y * (end - start) * (extent - 1) / (width - 1) + start * (extent - 1)
    if mode == "pytorch_half_pixel" and width == 1:
        return np.full(size, -0.5)
    places = (y + 0.5) / scale - 0.5
    return places + extent / 2 * (1 - size / width) if mode == "half_pixel_symmetric" else places


def _cubic(distance: Any, a: float) -> Any:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _nearest(places: Any, mode: str) -> Any:
    """The index of the element nearest to each place."""
    match mode:
        case "floor":
            return np.floor(places)
        case "ceil":
            return np.ceil(places)
        case "round_prefer_ceil":
            return np.floor(places + 0.5)
    return np.ceil(places - 0.5)


def _weights(places: Any, extent: int, kind: str, scale: float, attributes: Any) -> Any:
    """The matrix of interpolation: a row of weights of all elements for each result."""
    shrink = min(scale, 1.0) if attributes.get("antialias", 0) else 1.0
    a = attributes.get("cubic_coeff_a", CUBIC)
    radius = math.ceil((2 if kind == "cubic" else 1) / shrink)
    base = np.floor(places).astype(np.int64)
    offsets = np.arange(-radius, radius + 1)
    index = base[:, None] + offsets[None, :]
    distance = (index - places[:, None]) * shrink
    values = _cubic(distance, a) if kind == "cubic" else np.clip(1 - np.abs(distance), 0, 1)
    if attributes.get("exclude_outside", 0):
        values = np.where((index < 0) | (index >= extent), 0.0, values)
    values = values / values.sum(axis=1, keepdims=True)
    matrix = np.zeros((places.size, extent))
    np.add.at(matrix, (np.arange(places.size)[:, None], np.clip(index, 0, extent - 1)), values)
    return matrix


def resized(x: Any, axis: int, size: int, scale: float, roi: tuple[float, float], attributes: Any) -> Any:
    """An array resized along one axis."""
    extent, kind = int(x.shape[axis]), attributes.get("mode", "nearest")
    transformation = attributes.get("coordinate_transformation_mode", "half_pixel")
    limit((size, extent))
    places = _coordinates(transformation, extent, size, scale, roi)
    if kind == "nearest":
        index = np.clip(_nearest(places, attributes.get("nearest_mode", "round_prefer_floor")), 0, extent - 1)
        result = np.take(x, constant(index, np.int64), axis=axis)
    else:
        matrix = constant(
            _weights(places, extent, kind, scale, attributes), x.dtype if x.dtype.kind == "f" else np.float32
        )
        rows = np.moveaxis(x, axis, -1).astype(matrix.dtype) @ matrix.T
        result = np.moveaxis(rows, -1, axis)
        result = result if x.dtype.kind == "f" else _to_ints(result, x.dtype)
    if transformation == "tf_crop_and_resize":
        outside = (places < 0) | (places > extent - 1)
        if outside.any():
            value = like(attributes.get("extrapolation_value", 0.0), result)
            result = np.where(constant(outside.reshape(-1, *(1,) * (x.ndim - axis - 1))), value, result)
    return result


def _to_ints(x: Any, dtype: Any) -> Any:
    info = np.iinfo(dtype)
    return np.minimum(np.maximum(np.rint(x), like(info.min, x)), like(info.max, x)).astype(dtype)


def _is_resize2d(x: Any, steps: Sequence[tuple[int, int, float]], attributes: Any) -> bool:
    """Whether the kernel RESIZE2D computes it: images in floats, places that follow from their sizes alone."""
    transformation = attributes.get("coordinate_transformation_mode", "half_pixel")
    usual = not attributes.get("antialias", 0) and not attributes.get("exclude_outside", 0)
    usual = usual and attributes.get("cubic_coeff_a", CUBIC) == CUBIC
    places = transformation in COORDINATES or (
        transformation == "pytorch_half_pixel" and all(size > 1 for axis, size, _ in steps if axis > 1)
    )
    extents = [int(extent) for extent in x.shape]
    return (
        is_traced(x)
        and x.dtype in (np.float32, np.float64)
        and x.ndim == 4
        and usual
        and places
        and all(size > 0 and math.isclose(factor * extents[axis], size, rel_tol=1e-12) for axis, size, factor in steps)
        and all(factor == 1 for axis, _, factor in steps if axis < 2)
        and min(extents) > 0
    )


def _by_kernel(x: Any, steps: Sequence[tuple[int, int, float]], attributes: Any, is_channels_last: bool) -> Any:
    """The kernel RESIZE2D: on images of all channels where these are last in memory, else on one channel at a time."""
    sizes = {axis: size for axis, size, _ in steps}
    batch, channels, *extents = x.shape
    size = tuple(sizes.get(axis, int(extent)) for axis, extent in enumerate(extents, 2))
    coordinates = attributes.get("coordinate_transformation_mode", "half_pixel").removeprefix("pytorch_")
    given = attributes.get("mode", "nearest"), coordinates, attributes.get("nearest_mode", "round_prefer_floor")
    if is_channels_last:
        return channels_first(jk.resize2d(images(x), size, *given), 4)
    rows = np.reshape(x, (batch * channels, *map(int, extents), 1))
    return np.reshape(jk.resize2d(rows, size, *given), (batch, channels, *size))


@operator("Resize", since=11, static=(1, 2, 3))
def resize(x: Any, roi: Any = None, scales: Any = None, sizes: Any = None, *, node: Any = None) -> Any:
    attributes = node.attributes
    axes = [axis_of(axis, x.ndim) for axis in attributes.get("axes") or range(x.ndim)]
    extents = [int(x.shape[axis]) for axis in axes]
    if sizes is not None and np.asarray(sizes).size:
        wanted = list(concrete_ints(sizes))
        factors = [size / extent for size, extent in zip(wanted, extents, strict=True)]
        policy = attributes.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(axes)
            wanted = [math.floor(factor * extent + 0.5) for extent in extents]
    elif scales is not None:
        factors = [float(one) for one in np.asarray(concrete_array(scales)).reshape(-1)]
        wanted = [math.floor(factor * extent) for factor, extent in zip(factors, extents, strict=True)]
    else:
        raise ModelError("expected scales or sizes")
    bounds = [] if roi is None else [float(one) for one in np.asarray(roi).reshape(-1)]
    if len(bounds) != 2 * len(axes):
        bounds = [0.0] * len(axes) + [1.0] * len(axes)
    cropped = attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    return _along_all(x, list(zip(axes, wanted, factors, strict=True)), bounds, cropped, node)


def _along_all(
    x: Any, steps: Sequence[tuple[int, int, float]], bounds: Sequence[float], cropped: bool, node: Any
) -> Any:
    attributes = node.attributes
    limit([max(size, 0) for _, size, _ in steps])
    if _is_resize2d(x, steps, attributes):
        return _by_kernel(x, steps, attributes, node.is_channels_last)
    dtype = x.dtype
    is_whole = dtype.kind in "iu" and attributes.get("mode", "nearest") != "nearest"
    x = x.astype(np.float32) if is_whole else x
    for i, (axis, size, factor) in enumerate(steps):
        if size < 0 or factor <= 0:
            raise ModelError(f"an axis of {size} elements, {factor} times as many as before")
        if factor != 1 or size != int(x.shape[axis]) or cropped:
            x = resized(x, axis, size, factor, (bounds[i], bounds[i + len(steps)]), attributes)
    return _to_ints(x, dtype) if is_whole else x


@operator("Resize", since=10, static=(1,))
@operator("Upsample", since=9, static=(1,))
def upsample(x: Any, scales: Any, *, mode: str = "nearest", node: Any = None) -> Any:
    factors = [float(one) for one in np.asarray(concrete_array(scales)).reshape(-1)]
    return _upsampled(x, factors, mode, node)


@operator("Upsample")
def upsample_by_attribute(x: Any, *, scales: list[float], mode: str = "nearest", node: Any = None) -> Any:
    return _upsampled(x, scales, mode, node)


def _upsampled(x: Any, factors: Sequence[float], mode: str, node: Any) -> Any:
    attributes = {
        "mode": "nearest" if mode == "nearest" else "linear",
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }
    steps = [(axis, math.floor(factor * int(x.shape[axis])), factor) for axis, factor in enumerate(factors)]
    bounds = [0.0] * x.ndim + [1.0] * x.ndim
    return _along_all(x, steps, bounds, False, replace(node, attributes=attributes))


def _unnormalized(places: Any, extent: int, aligned: int) -> Any:
    """Coordinates between -1 and 1 as positions among elements."""
    one, half = like(1, places), like(0.5, places)
    if aligned:
        return (places + one) * half * like(extent - 1, places)
    return ((places + one) * like(extent, places) - one) * half


def _inside(index: Any, extent: int, padding: str, aligned: int) -> tuple[Any, Any]:
    """Positions moved into an axis, and where they lay in it; None where all count."""
    last = like(extent - 1, index)
    if padding == "border":
        return np.minimum(np.maximum(index, like(0, index)), last), None
    if padding == "zeros":
        inside = (index >= like(0, index)) & (index <= last)
        return np.minimum(np.maximum(index, like(0, index)), last), inside
    low, high = (0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5)
    if high == low:
        return index * like(0, index), None
    period = like(2 * (high - low), index)
    folded = np.remainder(index - like(low, index), period)
    folded = np.minimum(folded, period - folded) + like(low, index)
    return np.minimum(np.maximum(np.trunc(folded), like(0, index)), last), None


@operator("GridSample")
def grid_sample(x: Any, grid: Any, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0) -> Any:
    """Elements at the places that a grid names, interpolated between their neighbours."""
    space = [int(extent) for extent in x.shape[2:]]
    places = [_unnormalized(grid[..., len(space) - 1 - i], extent, align_corners) for i, extent in enumerate(space)]
    if mode == "nearest":
        rows = [[(np.rint(one), None)] for one in places]
    elif mode in ("linear", "bilinear"):
        rows = [_linear_taps(one) for one in places]
    else:
        rows = [_cubic_taps(one) for one in places]
    return _interpolated(x, rows, (padding_mode, align_corners))


def _linear_taps(place: Any) -> list[tuple[Any, Any]]:
    first = np.floor(place)
    ratio = place - first
    return [(first, like(1, place) - ratio), (first + like(1, place), ratio)]


def _cubic_taps(place: Any) -> list[tuple[Any, Any]]:
    a = CUBIC
    first = np.floor(place)
    ratio = place - first

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    weights = (far(ratio + 1), near(ratio), near(1 - ratio), far(2 - ratio))
    return [(first + like(k - 1, place), weight) for k, weight in enumerate(weights)]


def _interpolated(x: Any, rows: Sequence[Sequence[tuple[Any, Any]]], padding: tuple[str, int]) -> Any:
    """The sum over all neighbours of their weights times their elements."""
    space = [int(extent) for extent in x.shape[2:]]
    dimensions = rows[0][0][0].ndim
    batch = np.reshape(numbers(x.shape[0]), (-1, *(1,) * (dimensions - 1)))
    last = np.moveaxis(x, 1, -1)
    total = None
    for taps in itertools.product(*rows):
        index, weight = [], None
        for (place, share), extent in zip(taps, space, strict=True):
            moved, inside = _inside(place, extent, *padding)
            index.append(moved.astype(np.int64))
            for factor in (share, None if inside is None else inside.astype(x.dtype)):
                if factor is not None:
                    weight = factor if weight is None else weight * factor
        found = last[(broadcast(batch, index[0].shape), *index)]
        term = found if weight is None else found * np.expand_dims(weight, -1).astype(x.dtype)
        total = term if total is None else total + term
    assert total is not None, "a window has taps"
    return np.moveaxis(total, -1, 1)


@operator("AffineGrid", static=(1,))
def affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    space = [int(one) for one in np.asarray(size)[2:]]
    limit(space)
    axes = [
        np.linspace(-1, 1, extent) if align_corners else (2 * np.arange(extent) + 1) / extent - 1 for extent in space
    ]
    grids = np.meshgrid(*axes, indexing="ij")[::-1]
    homogeneous = np.stack([*grids, np.ones(space)], axis=-1).reshape(-1, len(space) + 1)
    points = constant(homogeneous, theta.dtype) @ np.transpose(theta, (0, 2, 1))
    return np.reshape(points, (theta.shape[0], *space, len(space)))
