"""Shapes: sizes of arrays, and what is done with them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.errors import ModelError
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import (
    axis_of,
    concrete_ints,
    constant,
    created,
    ints,
    is_sizes,
    like,
    limit,
    numbers,
    sizes,
)


@operator("Shape")
def shape(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return sizes(x.shape[start:end])


@operator("Size")
def size(x: Any) -> Any:
    return sizes([math.prod(x.shape)]).reshape(())


@operator("Reshape", since=5, static=(1,), sizes=True)
def reshape(x: Any, wanted: Any, *, allowzero: int = 0, node: Any = None) -> Any:
    """The elements in another shape; channels of images that lie last in memory are split and joined there."""
    requested = list(ints(wanted))
    if not allowzero:
        if sum(type(one) is int and one == 0 for one in requested) and len(requested) > x.ndim:
            requested = _copied_zeros(requested, x.shape)
        else:
            requested = [x.shape[i] if _is(one, 0) else one for i, one in enumerate(requested)]
    if sum(_is(one, -1) for one in requested) > 1:
        raise ModelError("a shape with two sizes of -1")
    known = math.prod(one for one in requested if not _is(one, -1))
    if any(_is(one, -1) for one in requested) and _is(known, 0):
        requested = [0 if _is(one, -1) else one for one in requested]
    if node.is_channels_last and _keeps_space(x.shape, requested):
        count, more = x.ndim, len(requested)
        last = np.transpose(x, (0, count - 2, count - 1, *range(1, count - 2)))
        last = np.reshape(last, (requested[0], *requested[-2:], *requested[1:-2]))
        return np.transpose(last, (0, *range(3, more), 1, 2))
    return np.reshape(x, tuple(requested))


def _keeps_space(shape: Sequence[Any], requested: Sequence[Any]) -> bool:
    """Whether a reshape of images changes their dimensions of channels alone."""
    return (
        min(len(shape), len(requested)) >= 4
        and bool(shape[0] == requested[0])
        and all(bool(one == other) for one, other in zip(shape[-2:], requested[-2:], strict=True))
    )


def _copied_zeros(requested: list[Any], own: tuple[Any, ...]) -> list[Any]:
    result = []
    for i, one in enumerate(requested):
        if _is(one, 0) and i >= len(own):
            raise ModelError(f"a shape that copies size {i} of an array of {len(own)} dimensions")
        result.append(own[i] if _is(one, 0) else one)
    return result


def _is(one: Any, value: int) -> bool:
    return type(one) is int and one == value


@operator("Reshape")
def reshape_by_attribute(x: Any, *, shape: list[int], node: Any = None) -> Any:  # noqa: A002, RUF100
    return reshape(x, constant(shape, np.int64), node=node)


@operator("Flatten")
def flatten(x: Any, *, axis: int = 1) -> Any:
    axis = axis + x.ndim if axis < 0 else axis
    rows = math.prod(x.shape[:axis])
    return np.reshape(x, (rows, math.prod(x.shape[axis:])))


@operator("Squeeze", since=13, static=(1,), sizes=True)
def squeeze(x: Any, axes: Any = None) -> Any:
    if axes is None:
        return np.squeeze(x)
    return np.squeeze(x, axis=tuple(axis_of(axis, x.ndim) for axis in concrete_ints(axes)))


@operator("Squeeze", sizes=True)
def squeeze_by_attribute(x: Any, *, axes: list[int] | None = None) -> Any:
    return squeeze(x, None if axes is None else constant(axes, np.int64))


@operator("Unsqueeze", since=13, static=(1,), sizes=True)
def unsqueeze(x: Any, axes: Any) -> Any:
    new = concrete_ints(axes)
    total = x.ndim + len(new)
    return np.expand_dims(x, tuple(axis_of(axis, total) for axis in new))


@operator("Unsqueeze", sizes=True)
def unsqueeze_by_attribute(x: Any, *, axes: list[int]) -> Any:
    return unsqueeze(x, constant(axes, np.int64))


@operator("Transpose")
def transpose(x: Any, *, perm: list[int] | None = None) -> Any:
    return np.transpose(x, perm)


@operator("Concat", sizes=True)
def concat(*arrays: Any, axis: int = 1, node: Any = None) -> Any:
    """One array behind another; channels of images that lie last in memory are joined there, without transposing."""
    if node.is_channels_last and arrays[0].ndim == 4 and axis in (1, -3):
        joined = np.concatenate([np.transpose(one, (0, 2, 3, 1)) for one in arrays], axis=-1)
        return np.transpose(joined, (0, 3, 1, 2))
    return np.concatenate(list(arrays), axis=axis_of(axis, arrays[0].ndim))


@operator("Expand", static=(1,), sizes=True)
def expand(x: Any, wanted: Any) -> Any:
    return np.broadcast_to(x, _limited(_broadcast(x.shape, ints(wanted))))


def _limited(wanted: tuple[Any, ...]) -> tuple[Any, ...]:
    limit(wanted)
    return wanted


def _broadcast(left: tuple[Any, ...], right: tuple[Any, ...]) -> tuple[Any, ...]:
    """The shape to which two shapes broadcast."""
    count = max(len(left), len(right))
    left, right = (1,) * (count - len(left)) + tuple(left), (1,) * (count - len(right)) + tuple(right)
    return tuple(
        b if _is(a, 1) else a if _is(b, 1) else a if a == b else _refuse(a, b) for a, b in zip(left, right, strict=True)
    )


def _refuse(left: Any, right: Any) -> int:
    if left == 1:
        return right  # type: ignore[no-any-return]  # symbolic sizes of 1
    if right == 1:
        return left  # type: ignore[no-any-return]
    raise ModelError(f"sizes {int(left)} and {int(right)} do not broadcast")


@operator("Tile", since=6, static=(1,))
def tile(x: Any, repeats: Any) -> Any:
    times = ints(repeats)
    limit([count * extent for count, extent in zip(times, x.shape, strict=False)])
    return np.tile(x, times)


@operator("ConstantOfShape", static=(0,))
def constant_of_shape(wanted: Any, *, value: Any = None) -> Any:
    number = np.float32(0) if value is None else value.reshape(-1)[0]
    return created(np.full, ints(wanted), number)


@operator("Constant")
def constant_value(
    *, value: Any = None, value_float: Any = None, value_floats: Any = None, value_int: Any = None,
    value_ints: Any = None, node: Any = None,
) -> Any:  # fmt: skip
    if value is not None:
        return value
    for number, dtype in (
        (value_float, "float32"),
        (value_floats, "float32"),
        (value_int, "int64"),
        (value_ints, "int64"),
    ):
        if number is not None:
            return constant(number, dtype)
    attributes = node.attributes
    if "sparse_value" in attributes:
        return attributes["sparse_value"]
    return constant(attributes.get("value_strings", attributes.get("value_string")), object)


@operator("Range", static=(0, 1, 2))
def arange(start: Any, end: Any, step: Any) -> Any:
    values = [ints(one)[0] if is_sizes(one) else np.asarray(one).reshape(-1)[0] for one in (start, end, step)]
    if is_sizes(start) or is_sizes(end) or is_sizes(step):
        first, last, by = values
        if _is(int(by), 1):
            return numbers(last - first) + int(first) if not _is(first, 0) else numbers(last - first)
    first, last, by = (np.asarray(one).item() if not is_sizes(one) else int(ints(one)[0]) for one in (start, end, step))
    if not by:
        raise ModelError("a range with a step of 0")
    count = max(math.ceil((last - first) / by), 0)
    limit((count,))
    dtype = np.int64 if is_sizes(start) else np.asarray(start).dtype
    return constant(np.arange(count, dtype=np.int64) * by + first, dtype)


@operator("EyeLike")
def eye_like(x: Any, *, dtype: int | None = None, k: int = 0) -> Any:
    from jitkernels.onnx.element_types import dtype_of

    rows, columns = x.shape
    wanted = x.dtype if dtype is None else dtype_of(dtype)
    return (numbers(columns)[None, :] == numbers(rows)[:, None] + k).astype(wanted)


@operator("Trilu", static=(1,))
def triangle(x: Any, k: Any = None, *, upper: int = 1) -> Any:
    offset = 0 if k is None else concrete_ints(k)[0]
    rows, columns = (numbers(extent) for extent in x.shape[-2:])
    distance = columns[None, :] - rows[:, None]
    return np.where(distance >= offset if upper else distance <= offset, x, like(0, x))


@operator("DepthToSpace")
def depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    batch, channels, height, width = x.shape
    inner = channels // (blocksize * blocksize)
    if mode == "DCR":
        parts = np.reshape(x, (batch, blocksize, blocksize, inner, height, width))
        parts = np.transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = np.reshape(x, (batch, inner, blocksize, blocksize, height, width))
        parts = np.transpose(parts, (0, 1, 4, 2, 5, 3))
    return np.reshape(parts, (batch, inner, height * blocksize, width * blocksize))


@operator("SpaceToDepth")
def space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    batch, channels, height, width = x.shape
    rows, columns = height // blocksize, width // blocksize
    parts = np.reshape(x, (batch, channels, rows, blocksize, columns, blocksize))
    parts = np.transpose(parts, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return np.reshape(parts, (batch, channels * blocksize * blocksize, rows, columns))


@operator("CenterCropPad", static=(1,))
def center_crop_pad(x: Any, wanted: Any, *, axes: list[int] | None = None) -> Any:
    """The middle of an array; zeros around it where it is smaller."""
    chosen = range(x.ndim) if axes is None else [axis_of(axis, x.ndim) for axis in axes]
    for axis, extent in zip(chosen, concrete_ints(wanted), strict=True):
        own = int(x.shape[axis])
        if own > extent:
            begin = (own - extent) // 2
            x = x[(*(slice(None),) * axis, slice(begin, begin + extent))]
        elif own < extent:
            before = (extent - own) // 2
            limit((extent,))
            widths = [(0, 0)] * x.ndim
            widths[axis] = (before, extent - own - before)
            x = np.pad(x, widths)
    return x


@operator("NonZero", host=True)
def nonzero(x: Any) -> Any:
    return np.array(np.nonzero(x), np.int64).reshape(max(x.ndim, 1), -1)
