"""Elements at computed indices, sorting, and scattered updates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.torch.array_values import axes_of, created, is_empty, numbers
from jitkernels.torch.aten_table import operator


@operator("embedding.default")
def embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Any:
    return weight[indices]


@operator("embedding_dense_backward.default")
def embedding_dense_backward(
    dy: Any, indices: Any, num_weights: Any, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    if scale_grad_by_freq:
        raise NotImplementedError("scale_grad_by_freq")
    flat = np.reshape(indices, (-1,))
    rows = np.reshape(dy, (flat.shape[0], dy.shape[-1]))
    if padding_idx >= 0:
        rows = np.where((flat == padding_idx)[:, None], dy.dtype.type(0), rows)
    result = created(np.zeros, (num_weights, dy.shape[-1]), dy.dtype)
    np.add.at(result, flat, rows)
    return result


@operator("index_select.default")
def index_select(x: Any, dim: int, index: Any) -> Any:
    return np.take(x, index, axis=dim) if x.ndim else x


@operator("gather.default")
def gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    if is_empty(index.shape):
        return created(np.zeros, index.shape, x.dtype)
    (x, index), shape = _vectors(x, index), index.shape
    own = tuple(slice(None) if axis == dim % x.ndim else slice(0, index.shape[axis]) for axis in range(x.ndim))
    return np.reshape(np.take_along_axis(x[own], index, axis=dim), shape)


@operator("index.Tensor", "_unsafe_index.Tensor")
def index(x: Any, indices: Sequence[Any]) -> Any:
    if any(one is not None and one.dtype == bool for one in indices):
        raise NotImplementedError("masks as indices")
    return x[tuple(slice(None) if one is None else one for one in indices)]


@operator("index_put.default", "_unsafe_index_put.default")
def index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    given = [one for one in indices if one is not None]
    if any(one.dtype == bool for one in given):
        if len(given) > 1 or indices[0] is None or values.ndim > x.ndim - given[0].ndim:
            raise NotImplementedError("masks as indices, with values for each element")
        mask = np.reshape(given[0], given[0].shape + (1,) * (x.ndim - given[0].ndim))
        return np.where(mask, x + values if accumulate else values, x)
    result = np.copy(x)
    where: Any = tuple(slice(None) if one is None else one for one in indices)
    if accumulate:
        np.add.at(result, where, values)
    else:
        result[where] = values
    return result


def _grid(index: Any, dim: int) -> tuple[Any, ...]:
    """The indices of all axes of elements that `index` picks along one."""
    dim, grid = dim % index.ndim, []
    for axis in range(index.ndim):
        if axis == dim:
            grid.append(index)
        else:
            shape = tuple(-1 if other == axis else 1 for other in range(index.ndim))
            grid.append(np.reshape(numbers(index.shape[axis]), shape))
    return tuple(grid)


def _source(index: Any, source: Any) -> Any:
    return source[tuple(slice(0, extent) for extent in index.shape)] if hasattr(source, "shape") else source


def _vectors(*operands: Any) -> list[Any]:
    """Operands where scalars are vectors of one element, as torch takes them."""
    return [np.reshape(one, (1,)) if hasattr(one, "ndim") and not one.ndim else one for one in operands]


@operator("scatter.src", "scatter.value")
def scatter(x: Any, dim: int, index: Any, source: Any) -> Any:
    if is_empty(index.shape):
        return np.copy(x)
    vector, index, source = _vectors(x, index, source)
    result = np.copy(vector)
    result[_grid(index, dim)] = _source(index, source)
    return np.reshape(result, x.shape)


@operator("scatter_add.default")
def scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    if is_empty(index.shape):
        return np.copy(x)
    vector, index, source = _vectors(x, index, source)
    result = np.copy(vector)
    np.add.at(result, _grid(index, dim), _source(index, source))
    return np.reshape(result, x.shape)


@operator("index_add.default")
def index_add(x: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    result = np.copy(x)
    where: Any = (*(slice(None),) * axes_of(dim, x.ndim)[0], index) if x.ndim else ()
    np.add.at(result, where, source if alpha == 1 else source * x.dtype.type(alpha))
    return result


@operator("sort.default", "sort.stable")
def sort(x: Any, *args: Any, dim: int = -1, descending: bool = False, stable: Any = False) -> Any:
    dim, descending = _sort_arguments(args, dim, descending)
    if not x.ndim:
        return x, np.zeros((), np.int64)
    order = _order(x, dim, descending)
    return np.take_along_axis(x, order, axis=dim), order


def _order(x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort an axis, stably; NaNs are largest. Descending ones sort the reversed axis."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    reversed_order = np.flip(np.argsort(np.flip(x, dim), axis=dim, kind="stable"), dim)
    return x.shape[dim] - 1 - reversed_order


def _sort_arguments(args: Sequence[Any], dim: int, descending: bool) -> tuple[int, bool]:
    given = [one for one in args if one is not None]
    return (given[0] if given else dim), (bool(given[1]) if len(given) > 1 else descending)


@operator("topk.default")
def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:  # noqa: A002
    if not x.ndim:
        return x, np.zeros((), np.int64)
    axis = dim % x.ndim
    moved = np.moveaxis(x, axis, -1)
    if largest and x.dtype.kind == "f":
        values, order = jk.topk(moved, k)
        return np.moveaxis(values, -1, axis), np.moveaxis(order.astype(np.int64), -1, axis)
    order = _order(moved, -1, largest)[..., :k]
    return np.moveaxis(np.take_along_axis(moved, order, axis=-1), -1, axis), np.moveaxis(order, -1, axis)


@operator("searchsorted.Tensor")
def searchsorted(
    sequence: Any, x: Any, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None
) -> Any:
    if sequence.ndim != 1 or sorter is not None:
        raise NotImplementedError("rows of sequences, or a sorter")
    result = np.searchsorted(sequence, x, side="right" if right or side == "right" else "left")
    return result.astype(np.int32) if out_int32 else result
