"""Parts of arrays: slices, gathers and scatters, splits, paddings, the largest elements."""

import math
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.compiler.capture.array_proxy import traced
from jitkernels.compiler.capture.trace_context import current
from jitkernels.errors import ModelError
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import (
    NotServedError,
    axis_of,
    broadcast,
    concrete_ints,
    constant,
    created,
    has_symbols,
    in_trace,
    ints,
    is_sizes,
    is_traced,
    like,
    limit,
    number,
    numbers,
)

SLICE_END = 2**62
"""Ends of slices beyond this mean the end of the axis."""


@operator("Slice", since=10, static=(1, 2, 3, 4), sizes=True)
def slice_(x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    begin, end = ints(starts), ints(ends)
    tracer = current()
    if tracer is not None and has_symbols((*begin, *end)) and not is_sizes(x):
        x = traced(tracer, x)  # a constant would fix the sizes of this call
    chosen = range(len(begin)) if axes is None else [axis_of(axis, x.ndim) for axis in concrete_ints(axes)]
    by = (1,) * len(begin) if steps is None else concrete_ints(steps)
    key = [slice(None)] * x.ndim
    for axis, first, last, step in zip(chosen, begin, end, by, strict=True):
        key[axis] = _slice(first, last, step, x.shape[axis])
    return x[tuple(key)]


def _slice(first: Any, last: Any, step: int, extent: Any) -> slice:
    """A slice of ONNX, whose ends are clamped to the axis, also where they are negative."""
    if not step:
        raise ModelError("a slice with a step of 0")
    if step > 0:
        return slice(_near(first, -SLICE_END), _near(last, -SLICE_END), step)
    if first < -extent:
        return slice(0, 0)
    last = None if last < -extent else last
    return slice(_near(first, -SLICE_END), last, step)


def _near(end: Any, low: int) -> Any:
    """An end of a slice, without the huge ints that stand for the end of the axis."""
    if type(end) is not int:
        return end
    return None if end >= SLICE_END or end <= low else end


@operator("Slice")
def slice_by_attributes(x: Any, *, starts: list[int], ends: list[int], axes: list[int] | None = None) -> Any:
    return slice_(x, constant(starts), constant(ends), None if axes is None else constant(axes))


@operator("Gather", sizes=True)
def gather(x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = axis_of(axis, x.ndim)
    if not is_traced(indices):
        return np.take(x, _inside(np.asarray(indices), x.shape[axis]), axis=axis)
    return np.take(in_trace(x, indices), indices, axis=axis)


def _inside(indices: Any, extent: Any) -> Any:
    """Constant indices: one of them as a number, so that it selects a view."""
    if indices.ndim == 0:
        return int(indices)
    return constant(indices)


@operator("GatherElements")
def gather_elements(x: Any, indices: Any, *, axis: int = 0) -> Any:
    axis = axis_of(axis, x.ndim)
    x = in_trace(x, indices)
    inner = tuple(slice(0, extent) if i != axis else slice(None) for i, extent in enumerate(indices.shape))
    return np.take_along_axis(x[inner], indices, axis=axis)


@operator("GatherND")
def gather_nd(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    last = int(indices.shape[-1])
    outer = indices.shape[batch_dims:-1]
    x = in_trace(x, indices)
    if not batch_dims:
        return x[tuple(indices[..., i] for i in range(last))]
    batch = math.prod(x.shape[:batch_dims])
    rows = np.reshape(x, (batch, *x.shape[batch_dims:]))
    picks = np.reshape(indices, (batch, *outer, last))
    first = broadcast(np.reshape(numbers(batch), (-1, *(1,) * len(outer))), (batch, *outer))
    found = rows[(first, *(picks[..., i] for i in range(last)))]
    return np.reshape(found, (*x.shape[:batch_dims], *outer, *x.shape[batch_dims + last :]))


REDUCED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@operator("ScatterElements", "Scatter")
def scatter_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    axis = axis_of(axis, x.ndim)
    key = []
    for i, extent in enumerate(indices.shape):
        if i == axis:
            key.append(np.where(indices < 0, indices + indices.dtype.type(x.shape[axis]), indices))
        else:
            along = np.reshape(numbers(extent), (*(1,) * i, -1, *(1,) * (x.ndim - i - 1)))
            key.append(broadcast(along, indices.shape))
    return _scattered(x, tuple(key), updates, reduction)


@operator("ScatterND")
def scatter_nd(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    key = tuple(indices[..., i] for i in range(int(indices.shape[-1])))
    return _scattered(x, key, updates, reduction)


def _scattered(x: Any, key: tuple[Any, ...], updates: Any, reduction: str) -> Any:
    x = in_trace(x, updates, *key)
    result = x.copy() if is_traced(x) else np.array(x)
    if reduction in ("none", ""):
        result[key] = updates
        return result
    if is_traced(result) and reduction != "add":
        raise NotServedError(f"a scatter with {reduction}")
    REDUCED[reduction].at(result, key, updates)
    return result


@operator("TensorScatter")
def tensor_scatter(past: Any, update: Any, indices: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """A cache with new entries along an axis, at an index for each row of the batch."""
    axis = axis_of(axis, past.ndim)
    batch, extent, count = past.shape[0], past.shape[axis], update.shape[axis]
    begin = created(np.zeros, (batch,), np.int64) if indices is None else indices
    places = begin[:, None] + numbers(count)[None, :]
    places = np.remainder(places, extent) if mode == "circular" else places
    past = in_trace(past, update, begin)
    result = past.copy() if is_traced(past) else np.array(past)
    moved, new = np.moveaxis(result, axis, 1), np.moveaxis(update, axis, 1)
    moved[broadcast(numbers(batch)[:, None], places.shape), places] = new
    return np.moveaxis(moved, 1, axis)


@operator("OneHot", static=(1,))
def one_hot(indices: Any, depth: Any, values: Any, *, axis: int = -1) -> Any:
    count = int(number(depth))
    limit((count,))
    axis = axis_of(axis, indices.ndim + 1)
    classes = np.reshape(numbers(count), (*(1,) * axis, -1, *(1,) * (indices.ndim - axis)))
    chosen = indices.astype(np.int64) if indices.dtype.kind == "f" else indices
    chosen = np.expand_dims(np.where(chosen < 0, chosen + chosen.dtype.type(count), chosen), axis)
    return np.where(chosen == classes, values[1], values[0])


def _parts(x: Any, sizes: list[Any], axis: int) -> tuple[Any, ...]:
    parts, begin = [], 0
    for extent in sizes:
        parts.append(x[(*(slice(None),) * axis, slice(begin, begin + extent))])
        begin = begin + extent
    return tuple(parts)


@operator("Split", since=13, static=(1,))
def split(x: Any, sizes: Any = None, *, axis: int = 0, num_outputs: int | None = None, node: Any = None) -> Any:
    axis = axis_of(axis, x.ndim)
    if sizes is not None:
        return _parts(x, list(ints(sizes)), axis)
    count = len(node.outputs) if num_outputs is None else num_outputs
    part = -(-x.shape[axis] // count)
    return _parts(x, [*(part,) * (count - 1), x.shape[axis] - part * (count - 1)], axis)


@operator("Split")
def split_by_attribute(x: Any, *, axis: int = 0, split: list[int] | None = None, node: Any = None) -> Any:
    axis = axis_of(axis, x.ndim)
    if split is not None:
        return _parts(x, list(split), axis)
    return _parts(x, [x.shape[axis] // len(node.outputs)] * len(node.outputs), axis)


@operator("Pad", since=11, static=(1, 3))
def pad(x: Any, widths: Any, value: Any = None, axes: Any = None, *, mode: str = "constant") -> Any:
    """Padding on both sides; negative widths cut off."""
    given = concrete_ints(widths)
    chosen = range(x.ndim) if axes is None else [axis_of(axis, x.ndim) for axis in concrete_ints(axes)]
    count = len(given) // 2
    both = {axis: (given[i], given[count + i]) for i, axis in enumerate(chosen)}
    key = tuple(
        slice(max(-low, 0), x.shape[axis] - max(-high, 0)) if low < 0 or high < 0 else slice(None)
        for axis, (low, high) in sorted({**dict.fromkeys(range(x.ndim), (0, 0)), **both}.items())
    )
    x = x[key] if key else x
    pairs: Any = [tuple(max(one, 0) for one in both.get(axis, (0, 0))) for axis in range(x.ndim)]
    limit([extent + low + high for extent, (low, high) in zip(x.shape, pairs, strict=True)])
    if mode == "constant":
        return _padded(x, pairs, like(0, x) if value is None else value)
    modes: Any = {"reflect": "reflect", "edge": "edge", "wrap": "wrap"}
    return np.pad(x, pairs, mode=modes[mode])


def _padded(x: Any, pairs: list[tuple[int, ...]], value: Any) -> Any:
    """An array with one number around it."""
    if not is_traced(value):
        return np.pad(x, pairs, constant_values=np.asarray(value).reshape(-1)[0])
    for axis, (low, high) in enumerate(pairs):
        sides = []
        for width in (low, high):
            shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
            sides.append([broadcast(np.reshape(value, (1,) * x.ndim), shape)] if width else [])
        x = np.concatenate([*sides[0], x, *sides[1]], axis=axis)
    return x


@operator("Pad")
def pad_by_attributes(
    x: Any, *, pads: list[int] | None = None, paddings: list[int] | None = None, mode: str = "constant",
    value: float = 0.0,
) -> Any:  # fmt: skip
    return pad(x, constant(pads or paddings, np.int64), like(value, x), mode=mode)


@operator("TopK", since=10, static=(1,))
def top_k(x: Any, count: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1) -> Any:  # noqa: A002
    axis, k = axis_of(axis, x.ndim), concrete_ints(count)[0]
    if not 0 <= k <= int(x.shape[axis]):
        raise ModelError(f"the {k} largest of {int(x.shape[axis])} elements")
    rows = np.moveaxis(x, axis, -1)
    if rows.dtype.kind == "f" and k and is_traced(x):
        values, indices = jk.topk(rows if largest else -rows, k)
        values = values if largest else -values
    else:
        order = rows if rows.dtype.kind == "f" else rows.astype(np.int64)
        indices = np.argsort(-order if largest else order, axis=-1, kind="stable")[..., :k]
        values = np.take_along_axis(rows, indices, axis=-1)
    return np.moveaxis(values, -1, axis), np.moveaxis(indices, -1, axis).astype(np.int64)


@operator("TopK")
def top_k_by_attribute(x: Any, *, axis: int = -1, k: int = 1) -> Any:
    return top_k(x, constant([k]), axis=axis)


@operator("ReverseSequence")
def reverse_sequence(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    steps = x.shape[time_axis]
    time = np.reshape(numbers(steps), (-1, 1) if time_axis == 0 else (1, -1))
    ends = np.reshape(lengths, (1, -1) if time_axis == 0 else (-1, 1))
    places = np.where(time < ends, ends - 1 - time, time)
    rest = x.ndim - 2
    places = broadcast(np.reshape(places, (*places.shape, *(1,) * rest)), x.shape)
    return np.take_along_axis(x, places, axis=time_axis)


@operator("Compress", host=True)
def compress(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    return np.compress(condition, x, axis=axis)


@operator("Unique", host=True)
def unique(x: Any, *, axis: int | None = None, sorted: int = 1) -> Any:  # noqa: A002
    values, indices, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(indices)
        rank = np.empty_like(order)
        rank[order] = np.arange(order.size)
        values = np.take(values, order, axis=axis or 0)
        indices, inverse, counts = indices[order], rank[inverse], counts[order]
    return values, indices.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)
