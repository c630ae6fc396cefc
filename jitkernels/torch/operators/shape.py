"""Views, and what arranges elements in another way."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from jitkernels.torch.array_values import axes_of, like
from jitkernels.torch.aten_table import operator

LARGEST_INDEX = 2**63 - 1
"""How torch writes a slice to the end."""


@operator("view.default", "_unsafe_view.default", "reshape.default", "view_copy.default", "_reshape_alias.default")
def view(x: Any, size: Sequence[Any], stride: Any = None) -> Any:
    return np.reshape(x, tuple(size))


@operator("view.dtype")
def view_dtype(x: Any, dtype: Any) -> Any:
    return x.view(dtype)


@operator("permute.default", "permute_copy.default")
def permute(x: Any, dims: Sequence[int]) -> Any:
    return np.transpose(x, axes_of(dims, x.ndim)) if x.ndim else x


@operator("t.default")
def transpose_matrix(x: Any) -> Any:
    return np.transpose(x)


@operator("transpose.int")
def transpose(x: Any, dim0: int, dim1: int) -> Any:
    return np.swapaxes(x, dim0, dim1) if x.ndim else x


@operator("unsqueeze.default", "unsqueeze_copy.default")
def unsqueeze(x: Any, dim: int) -> Any:
    return np.expand_dims(x, dim)


@operator("squeeze.default", "squeeze.dim", "squeeze.dims", "squeeze_copy.dim")
def squeeze(x: Any, dim: Any = None) -> Any:
    if isinstance(dim, Sequence) and not dim:
        return x
    gone = [axis for axis in axes_of(dim, x.ndim) if x.ndim and x.shape[axis] == 1]
    return np.squeeze(x, tuple(gone)) if gone else x


@operator("expand.default", "expand_copy.default")
def expand(x: Any, size: Sequence[Any], implicit: bool = False) -> Any:
    added = len(size) - x.ndim
    shape = [
        x.shape[axis - added] if type(extent) is int and extent == -1 else extent for axis, extent in enumerate(size)
    ]
    return np.broadcast_to(x, tuple(shape))


@operator("select.int", "select_copy.int")
def select(x: Any, dim: int, index: Any) -> Any:
    return x[(*(slice(None),) * (dim % x.ndim), index)]


@operator("slice.Tensor", "slice_copy.Tensor")
def slice_axis(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    return x[_slice(x, dim, start, end, step)]


def _slice(x: Any, dim: int, start: Any, end: Any, step: int) -> tuple[slice, ...]:
    stop = None if type(end) is int and end == LARGEST_INDEX else end
    return (*(slice(None),) * (dim % x.ndim), slice(start, stop, step))


@operator("slice_scatter.default")
def slice_scatter(x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    result = np.copy(x)
    result[_slice(x, dim, start, end, step)] = source
    return result


@operator("select_scatter.default")
def select_scatter(x: Any, source: Any, dim: int, index: Any) -> Any:
    result = np.copy(x)
    result[(*(slice(None),) * (dim % x.ndim), index)] = source
    return result


@operator("diagonal.default", "diagonal_copy.default")
def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return np.diagonal(x, offset, dim1, dim2)


@operator("cat.default")
def cat(tensors: Sequence[Any], dim: int = 0, result: Any = None) -> Any:
    """Legacy empty vectors are no operands."""
    parts = [one for one in tensors if not (one.ndim == 1 and type(one.shape[0]) is int and one.shape[0] == 0)]
    parts = [one.astype(result.dtype) for one in parts or tensors]
    return np.concatenate(parts, axis=dim) if len(parts) > 1 else np.copy(parts[0])


@operator("stack.default")
def stack(tensors: Sequence[Any], dim: int = 0, result: Any = None) -> Any:
    return np.stack([one.astype(result.dtype) for one in tensors], axis=dim)


@operator("split_with_sizes.default", "split_with_sizes_copy.default")
def split_with_sizes(x: Any, split_sizes: Sequence[Any], dim: int = 0) -> Any:
    begin, parts = 0, []
    for size in split_sizes:
        parts.append(x[_slice(x, dim, begin, begin + size, 1)])
        begin = begin + size
    return parts


@operator("split.Tensor")
def split(x: Any, split_size: Any, dim: int = 0) -> Any:
    extent = int(x.shape[dim])
    size = max(int(split_size), 1)
    return [x[_slice(x, dim, begin, begin + size, 1)] for begin in range(0, max(extent, 1), size)]


@operator("unbind.int", "unbind_copy.int")
def unbind(x: Any, dim: int = 0) -> Any:
    return [select(x, dim, i) for i in range(int(x.shape[dim]))]


@operator("flip.default")
def flip(x: Any, dims: Sequence[int]) -> Any:
    return np.flip(x, axes_of(dims, x.ndim)) if len(dims) else np.copy(x)


@operator("roll.default")
def roll(x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        return np.reshape(np.roll(np.reshape(x, (-1,)), shifts[0]), x.shape)
    return np.roll(x, tuple(shifts), tuple(dims))


@operator("repeat.default")
def repeat(x: Any, repeats: Sequence[Any]) -> Any:
    return np.tile(x, tuple(repeats))


@operator("constant_pad_nd.default")
def constant_pad_nd(x: Any, pad: Sequence[int], value: Any = 0) -> Any:
    """Pads from the last axis on; negative ones cut."""
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    cut = tuple(slice(max(-low, 0), -max(-high, 0) or None) for low, high in pairs)
    x = x[cut] if any(low < 0 or high < 0 for low, high in pairs) else x
    pairs = [(max(low, 0), max(high, 0)) for low, high in pairs]
    return np.pad(x, pairs, constant_values=like(value, x)) if any(map(any, pairs)) else np.copy(x)


def _padded(x: Any, pad: Sequence[int], mode: Literal["reflect", "edge"]) -> Any:
    pairs = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[i], pad[i + 1]) for i in range(len(pad) - 2, -1, -2)]
    return np.pad(x, pairs, mode=mode)


@operator("reflection_pad1d.default", "reflection_pad2d.default", "reflection_pad3d.default")
def reflection_pad(x: Any, padding: Sequence[int]) -> Any:
    return _padded(x, padding, "reflect")


@operator("replication_pad1d.default", "replication_pad2d.default", "replication_pad3d.default")
def replication_pad(x: Any, padding: Sequence[int]) -> Any:
    return _padded(x, padding, "edge")


@operator("tril.default")
def tril(x: Any, diagonal: int = 0) -> Any:
    return np.tril(x, diagonal)


@operator("triu.default")
def triu(x: Any, diagonal: int = 0) -> Any:
    return np.triu(x, diagonal)


@operator("pixel_shuffle.default")
def pixel_shuffle(x: Any, upscale_factor: int) -> Any:
    *batch, channels, high, wide = x.shape
    step = upscale_factor
    parts = np.reshape(x, (*batch, channels // (step * step), step, step, high, wide))
    n = len(batch)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return np.reshape(np.transpose(parts, order), (*batch, channels // (step * step), high * step, wide * step))


@operator("unfold.default")
def unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    if not x.ndim:
        return np.reshape(x, (1,))[:size]
    axis = dimension % x.ndim
    count = (int(x.shape[axis]) - size) // step + 1
    lead = (slice(None),) * axis
    parts = [x[(*lead, slice(k, k + (count - 1) * step + 1, step))] for k in range(size)]
    return np.stack(parts, axis=-1)


@operator("narrow_copy.default")
def narrow_copy(x: Any, dim: int, start: Any, length: Any) -> Any:
    return x[_slice(x, dim, start, start + length, 1)]


@operator("diagonal_scatter.default")
def diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    result = np.copy(x)
    first, second = dim1 % x.ndim, dim2 % x.ndim
    rows = np.arange(int(source.shape[-1])) + max(-offset, 0)
    moved = np.moveaxis(result, (first, second), (-2, -1))
    moved[..., rows, rows + offset] = source
    return result
