"""Sequences, which are lists of arrays, and optional values, which may be None."""

from typing import Any

import numpy as np

from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.operators.selection import _parts
from jitkernels.onnx.values import axis_of, concrete_ints, constant


def _position(position: Any, length: int) -> int:
    place = concrete_ints(position)[0]
    if not -length <= place <= length:
        raise IndexError(f"position {place} of a sequence of {length}")
    return place + length if place < 0 else place


@operator("SequenceConstruct")
def construct(*arrays: Any) -> Any:
    return list(arrays)


@operator("SequenceEmpty")
def empty(*, dtype: int = 1) -> Any:
    return []


@operator("SequenceAt", static=(1,))
def at(sequence: list[Any], position: Any) -> Any:
    return sequence[_position(position, len(sequence))]


@operator("SequenceInsert", static=(2,))
def insert(sequence: list[Any], array: Any, position: Any = None) -> Any:
    place = len(sequence) if position is None else _position(position, len(sequence))
    return [*sequence[:place], array, *sequence[place:]]


@operator("SequenceErase", static=(1,))
def erase(sequence: list[Any], position: Any = None) -> Any:
    place = len(sequence) - 1 if position is None else _position(position, len(sequence))
    return [*sequence[:place], *sequence[place + 1 :]]


@operator("SequenceLength")
def length(sequence: list[Any]) -> Any:
    return constant(len(sequence), np.int64)


@operator("SplitToSequence", static=(1,))
def split_to_sequence(x: Any, split: Any = None, *, axis: int = 0, keepdims: int = 1) -> Any:
    axis, extent = axis_of(axis, x.ndim), int(x.shape[axis_of(axis, x.ndim)])
    if split is None:
        parts = list(_parts(x, [1] * extent, axis))
        return parts if keepdims else [np.squeeze(one, axis=axis) for one in parts]
    sizes = concrete_ints(split)
    if np.asarray(split).ndim == 0:
        (size,) = sizes
        sizes = (*(size,) * (extent // size), *((extent % size,) if extent % size else ()))
    return list(_parts(x, list(sizes), axis))


@operator("ConcatFromSequence")
def concat_from_sequence(sequence: list[Any], *, axis: int, new_axis: int = 0) -> Any:
    return np.stack(sequence, axis=axis) if new_axis else np.concatenate(sequence, axis=axis)


@operator("Optional")
def optional(value: Any = None) -> Any:
    return value


@operator("OptionalHasElement")
def has_element(value: Any = None) -> Any:
    return constant(value is not None)


@operator("OptionalGetElement")
def get_element(value: Any) -> Any:
    if value is None:
        raise ValueError("an optional value that is absent")
    return value
