"""Detection: boxes of the best scores, regions pooled by interpolation, deformed convolutions."""

import itertools
import math
from typing import Any

import numpy as np

from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators.convolution import padded, space_of, window_of
from jitkernels.onnx.values import constant, created, like, number


@operator("NonMaxSuppression", host=True)
def non_max_suppression(
    boxes: Any, scores: Any, most: Any = None, overlap: Any = None, least: Any = None, *, center_point_box: int = 0
) -> Any:
    """The boxes of each class by their scores, without those that overlap better ones."""
    count = int(number(most)) if most is not None else 0
    limit = float(number(overlap)) if overlap is not None else 0.0
    threshold = -math.inf if least is None else float(number(least))
    if center_point_box:
        x, y, width, height = np.moveaxis(boxes, -1, 0)
        corners = np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=-1)
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
        corners = np.concatenate([low, high], axis=-1)
    areas = np.prod(corners[..., 2:] - corners[..., :2], axis=-1)
    found = []
    for batch, kind in itertools.product(range(scores.shape[0]), range(scores.shape[1])):
        own = scores[batch, kind]
        waiting = np.argsort(-own, kind="stable")
        waiting = waiting[own[waiting] > threshold]
        kept = 0
        while waiting.size and kept < count:
            best, waiting = waiting[0], waiting[1:]
            found.append((batch, kind, best))
            kept += 1
            low = np.maximum(corners[batch, best, :2], corners[batch, waiting, :2])
            high = np.minimum(corners[batch, best, 2:], corners[batch, waiting, 2:])
            common = np.prod(np.maximum(high - low, 0), axis=-1)
            union = areas[batch, best] + areas[batch, waiting] - common
            waiting = waiting[common <= limit * union]
    return np.array(found, np.int64).reshape(-1, 3)


def _bilinear(rows: Any, y: Any, x: Any) -> list[tuple[Any, Any]]:
    """The elements around places in an array [height, width, ...], and their weights."""
    height, width = int(rows.shape[0]), int(rows.shape[1])
    top, left = np.floor(y), np.floor(x)
    down, right = y - top, x - left
    parts = []
    for i, j in itertools.product((0, 1), (0, 1)):
        row, column = top + like(i, y), left + like(j, x)
        inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
        weight = (down if i else like(1, y) - down) * (right if j else like(1, x) - right)
        found = rows[np.clip(row, 0, height - 1).astype(np.int64), np.clip(column, 0, width - 1).astype(np.int64)]
        parts.append((found, np.where(inside, weight, like(0, weight))))
    return parts


@operator("DeformConv")
def deform_conv(x: Any, weights: Any, offsets: Any, *rest: Any, node: Any = None) -> Any:
    """A convolution whose taps are moved by offsets of each position, between elements."""
    bias, mask = (*rest, None, None)[:2]
    attributes = node.attributes
    groups, moved = attributes.get("group", 1), attributes.get("offset_group", 1)
    kernel = tuple(int(one) for one in weights.shape[2:])
    window = window_of(attributes, kernel, space_of(x))
    counts = window.results(space_of(x))
    batch, channels, filters = int(x.shape[0]), int(x.shape[1]), int(weights.shape[0])
    taps = math.prod(kernel)
    whole = padded(x, window)
    offsets = np.reshape(offsets, (batch, moved, taps, 2, *counts))
    mask = None if mask is None else np.reshape(mask, (batch, moved, taps, *counts))
    base = [np.arange(count) * step for count, step in zip(counts, window.strides, strict=True)]
    images = []
    for n in range(batch):
        columns = []
        for k, place in enumerate(itertools.product(*map(range, kernel))):
            first = [i * d for i, d in zip(place, window.dilations, strict=True)]
            parts = []
            for g in range(moved):
                size = channels // moved
                rows = np.moveaxis(whole[n, g * size : (g + 1) * size], 0, -1)
                y = offsets[n, g, k, 0] + _grid(base[0] + first[0], x.dtype)[:, None]
                z = offsets[n, g, k, 1] + _grid(base[1] + first[1], x.dtype)[None, :]
                value = sum(found * np.expand_dims(weight, -1) for found, weight in _bilinear(rows, y, z))
                parts.append(value if mask is None else value * np.expand_dims(mask[n, g, k], -1))
            columns.append(np.concatenate(parts, axis=-1))
        images.append(np.stack(columns, axis=-1))
    rows = np.reshape(np.stack(images), (batch, *counts, groups, channels // groups, taps))
    matrix = np.reshape(weights, (groups, filters // groups, channels // groups, taps))
    result = np.einsum("nhwgct,gfct->ngfhw", rows, matrix)
    result = np.reshape(result, (batch, filters, *counts))
    return result if bias is None else result + np.reshape(bias, (-1, 1, 1))


def _grid(values: Any, dtype: Any) -> Any:
    return constant(values, dtype)


@operator("RoiAlign", host=True)
def roi_align(x: Any, rois: Any, batches: Any, *, node: Any = None) -> Any:
    """Regions of images resampled to one size: means or maxima of interpolated elements."""
    attributes = node.attributes
    height, width = attributes.get("output_height", 1), attributes.get("output_width", 1)
    ratio, scale = attributes.get("sampling_ratio", 0), attributes.get("spatial_scale", 1.0)
    shift = 0.5 if attributes.get("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0.0
    if node.opset < 16:
        shift = 0.0
    result = np.zeros((rois.shape[0], x.shape[1], height, width), x.dtype)
    for n, (roi, batch) in enumerate(zip(rois, batches, strict=True)):
        left, top, right, bottom = (float(one) * scale - shift for one in roi)
        across, down = right - left, bottom - top
        if not shift:
            across, down = max(across, 1.0), max(down, 1.0)
        samples_y, samples_x = ratio or math.ceil(down / height), ratio or math.ceil(across / width)
        y = top + (np.arange(height * samples_y) + 0.5) * down / height / samples_y
        z = left + (np.arange(width * samples_x) + 0.5) * across / width / samples_x
        parts = [_clamped(x[int(batch)], y, z, i, j) for i, j in itertools.product((0, 1), (0, 1))]
        shape = (x.shape[1], height, samples_y, width, samples_x)
        if attributes.get("mode", "avg") == "avg":
            result[n] = sum(parts).reshape(shape).mean(axis=(2, 4))
        else:
            result[n] = np.maximum.reduce(parts).reshape(shape).max(axis=(2, 4))
    return result


def _clamped(image: Any, y: Any, z: Any, i: int, j: int) -> Any:
    """One neighbour of each place in an image, times its weight; places beyond an element of the edge count as 0."""
    axes = []
    for places, extent, side in ((y, image.shape[1], i), (z, image.shape[2], j)):
        outside = (places < -1) | (places > extent)
        inside = np.clip(places, 0, None)
        first = np.minimum(np.floor(inside).astype(int), extent - 1)
        inside = np.where(first >= extent - 1, extent - 1, inside)
        second = np.minimum(first + 1, extent - 1)
        weight = inside - first if side else 1 - (inside - first)
        axes.append((second if side else first, np.where(outside, 0, weight)))
    (rows, down), (columns, across) = axes
    return image[:, rows][:, :, columns] * down[:, None] * across


@operator("MaxRoiPool", host=True)
def max_roi_pool(x: Any, rois: Any, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Any:
    """The maxima of the parts of regions."""
    height, width = pooled_shape
    result = created(np.zeros, (rois.shape[0], x.shape[1], height, width), x.dtype)
    for n, roi in enumerate(rois):
        batch, left, top, right, bottom = int(roi[0]), *(round(float(one) * spatial_scale) for one in roi[1:])
        down, across = max(bottom - top + 1, 1) / height, max(right - left + 1, 1) / width
        for i, j in itertools.product(range(height), range(width)):
            rows = slice(max(top + math.floor(i * down), 0), min(top + math.ceil((i + 1) * down), x.shape[2]))
            columns = slice(max(left + math.floor(j * across), 0), min(left + math.ceil((j + 1) * across), x.shape[3]))
            part = x[batch, :, rows, columns]
            result[n, :, i, j] = part.max(axis=(1, 2)) if part.size else 0
    return result
