"""Reductions along axes, indices of extremes, and running sums."""

from typing import Any

import numpy as np

from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import axis_of, concrete_ints, like


def _sum(x: Any, axes: Any, keep: bool) -> Any:
    return x.sum(axis=axes, keepdims=keep, dtype=x.dtype)


def _mean(x: Any, axes: Any, keep: bool) -> Any:
    if x.dtype.kind in "iu":
        count = np.prod([x.shape[axis] for axis in axes]) if axes else 1
        return (_sum(x, axes, keep) / count).astype(x.dtype)
    return x.mean(axis=axes, keepdims=keep, dtype=x.dtype)


def _extreme(function: Any, smallest: bool) -> Any:
    """A maximum or minimum; that of nothing is the end of the dtype's range."""

    def compute(x: Any, axes: Any, keep: bool) -> Any:
        if any(x.shape[axis] == 0 for axis in axes):
            kind = x.dtype.kind
            low, high = (-np.inf, np.inf) if kind == "f" else (False, True) if kind == "b" else _limits(x.dtype)
            return function(x, axis=axes, keepdims=keep, initial=like(low if smallest else high, x))
        return function(x, axis=axes, keepdims=keep)

    return compute


def _limits(dtype: Any) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def _log_sum_exp(x: Any, axes: Any, keep: bool) -> Any:
    if any(x.shape[axis] == 0 for axis in axes):
        return np.log(_sum(np.exp(x), axes, keep))
    largest = np.max(x, axis=axes, keepdims=True)
    shift = np.where(np.isfinite(largest), largest, like(0, x))
    result = np.log(_sum(np.exp(x - shift), axes, True)) + shift
    return result if keep else np.squeeze(result, axis=axes)


REDUCTIONS = {
    "ReduceSum": _sum,
    "ReduceMean": _mean,
    "ReduceMax": _extreme(np.max, smallest=True),
    "ReduceMin": _extreme(np.min, smallest=False),
    "ReduceProd": lambda x, axes, keep: np.prod(x, axis=axes, keepdims=keep, dtype=x.dtype),
    "ReduceL1": lambda x, axes, keep: _sum(np.absolute(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: np.sqrt(_sum(x * x, axes, keep)).astype(x.dtype),
    "ReduceLogSum": lambda x, axes, keep: np.log(_sum(x, axes, keep)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceSumSquare": lambda x, axes, keep: _sum(x * x, axes, keep),
}
"""Functions of an array, axes, and whether these stay as axes of one element."""


def _enter(name: str, function: Any) -> None:
    def by_input(x: Any, axes: Any = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Any:
        return by_attribute(
            x, axes=[] if axes is None else list(concrete_ints(axes)), keepdims=keepdims, noop=noop_with_empty_axes
        )

    def by_attribute(x: Any, *, axes: list[int] | None = None, keepdims: int = 1, noop: int = 0) -> Any:
        """Without axes all of them, or none with `noop`: then the function of each element by itself."""
        if not axes and noop:
            return function(x, (), True) if name not in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean") else x
        chosen = tuple(axis_of(axis, x.ndim) for axis in axes or range(x.ndim))
        return function(x, chosen, bool(keepdims)) if x.ndim else function(x[None], (0,), False)

    operator(name)(by_attribute)
    operator(name, since=13 if name == "ReduceSum" else 18, static=(1,))(by_input)


for _name, _function in REDUCTIONS.items():
    _enter(_name, _function)


def _index_of_extreme(function: Any) -> Any:
    def compute(x: Any, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Any:
        axis = axis_of(axis, x.ndim)
        if select_last_index:
            result = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis)
        else:
            result = function(x, axis=axis)
        result = np.expand_dims(result, axis) if keepdims else result
        return result.astype(np.int64)

    return compute


operator("ArgMax")(_index_of_extreme(np.argmax))
operator("ArgMin")(_index_of_extreme(np.argmin))


def _running(function: Any, neutral: int) -> Any:
    def compute(x: Any, axis: Any, *, exclusive: int = 0, reverse: int = 0) -> Any:
        position = axis_of(concrete_ints(axis)[0], x.ndim)
        x = np.flip(x, position) if reverse else x
        result = function(x, axis=position, dtype=x.dtype)
        if exclusive:
            before = [slice(None)] * x.ndim
            before[position] = slice(None, -1)
            first = [slice(None)] * x.ndim
            first[position] = slice(0, 1)
            start = np.full_like(result[tuple(first)], like(neutral, x))
            result = np.concatenate([start, result[tuple(before)]], axis=position)
        return np.flip(result, position) if reverse else result

    return compute


operator("CumSum", static=(1,))(_running(np.cumsum, 0))
operator("CumProd", static=(1,))(_running(np.cumprod, 1))
