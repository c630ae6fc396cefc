"""Rearrangements of traced arrays: repeat, tile, roll, split, pad, take; concatenated from views, or gathered."""

import itertools
import operator
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.dynamic.repeat_by_counts import repeat_by_counts
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.numpy.concatenate import concatenate, joined
from jitkernels.compiler.capture.numpy.creation import iota
from jitkernels.compiler.capture.numpy.reductions import axes_of, is_given, tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import broadcast_to, flip, moveaxis, of_array, ravel, transpose
from jitkernels.compiler.capture.numpy.ufuncs import cast_to, operand, stored
from jitkernels.compiler.capture.override_registry import METHODS, overrides
from jitkernels.compiler.capture.symint import SymInt, as_extent
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Number


def along(array: Traced, axis: int, part: Any) -> Any:
    """A slice of one dimension."""
    return array[(slice(None),) * axis + (part,)]


@overrides(np.take, methods="take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    array = of_array(a)
    if mode != "raise":
        raise UnsupportedError("take with mode=")
    if axis is None:
        array, axis = ravel(array), 0
    position = axes_of((axis,), array.ndim)[0]
    if type(indices) is int or type(indices) is SymInt:
        result = along(array, position, indices)
        result = fresh(array.tracer, result.node, is_scalar=not result.ndim)
    else:
        chosen = traced(array.tracer, indices)
        if chosen.dtype.kind not in "iu":
            raise UnsupportedError("take by indices that are no ints")
        result = along(array, position, chosen if chosen.ndim else chosen.region((), ()))
        result = fresh(array.tracer, result.node, is_scalar=result.is_scalar)
    return stored(array.tracer, result.node, out) if out is not None else result


@overrides(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    array, key = _key_along(of_array(arr), of_array(indices), axis, "take_along_axis")
    return array[key]


@overrides(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    if type(arr) is not Traced:
        raise UnsupportedError("put_along_axis of an object that is no array of the trace")
    if axis is None and arr.ndim != 1:
        raise UnsupportedError("put_along_axis without an axis")
    array, key = _key_along(arr, of_array(indices), 0 if axis is None else axis, "put_along_axis")
    array[key] = values


def _key_along(array: Traced, chosen: Traced, axis: Any, name: str) -> tuple[Traced, Any]:
    """An array, and the key of the elements that indices gather along an axis."""
    if axis is None:
        array, axis = ravel(array), 0
    if array.ndim != chosen.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    position = axes_of((axis,), array.ndim)[0]
    key = []
    for i in range(array.ndim):
        if i == position:
            key.append(chosen)
            continue
        if array.extents[i] != chosen.extents[i]:
            raise UnsupportedError(f"{name} that broadcasts")
        numbers = builder.expand_dims(iota(array.extents[i]), [j for j in range(array.ndim) if j != i])
        key.append(fresh(array.tracer, numbers))
    return array, tuple(key)


@overrides(np.repeat, methods="repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    array = of_array(a)
    if isinstance(repeats, tuple | list) and len(repeats) == 1:
        repeats = repeats[0]
    if type(repeats) is Traced and repeats.ndim == array.ndim == 1 and axis in (None, 0, -1):
        return repeat_by_counts(array, repeats)
    if type(repeats) not in (int, SymInt, np.int64):
        raise UnsupportedError("repeat by an array")
    times = as_extent(repeats)
    if axis is None:
        array, axis = ravel(array), 0
    position = axes_of((axis,), array.ndim)[0]
    node = builder.expand_dims(array.node, (position + 1,))
    shape = [*array.extents[: position + 1], times, *array.extents[position + 1 :]]
    spread = builder.broadcast_to(node, shape)
    joined = [*array.extents[:position], array.extents[position] * times, *array.extents[position + 1 :]]
    return fresh(array.tracer, builder.reshape(spread, joined))


@overrides(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    array = of_array(A)
    times = tuple(as_extent(rep) for rep in reps) if isinstance(reps, tuple | list) else (as_extent(reps),)
    total = max(array.ndim, len(times))
    times = (1,) * (total - len(times)) + times
    node = builder.expand_dims(array.node, range(total - array.ndim)) if total > array.ndim else array.node
    shape, joined = [], []
    for count, extent in zip(times, node.shape, strict=True):
        shape += [count, extent]
        joined.append(count * extent)
    spread = builder.broadcast_to(builder.expand_dims(node, range(0, 2 * total, 2)), shape)
    return fresh(array.tracer, builder.reshape(spread, joined))


@overrides(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    array = of_array(a)
    if axis is None:
        flat = ravel(array)
        node = roll(flat, shift, 0).node if array.ndim else array.node
        return fresh(array.tracer, builder.reshape(node, array.extents))
    axes = axes_of(axis, array.ndim)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        axes = axes * len(shifts) if len(axes) == 1 else axes
    result = array
    for amount, position in zip(shifts, axes, strict=True):
        is_known = type(amount) is not Traced or amount.ndim or array.tracer.is_known(amount.node)
        result = _rolled(result, as_extent(amount), position) if is_known else _rolled_by(result, amount, position)
    created = fresh(array.tracer, result.node)
    if array.ndim > 1:
        created.view.storage.set_layout_like(array.view.strides())
    return created


def _rolled(array: Traced, shift: Number, axis: int) -> Traced:
    extent = array.extents[axis]
    if symbolic_dims.same(extent, 0) or symbolic_dims.same(extent, 1):
        return array
    if not (-extent < shift < extent):
        shift = shift % extent
    if shift == 0:
        return array
    cut = extent - shift if shift > 0 else -shift
    whole = SymInt(array.tracer, cut)
    return concatenate([along(array, axis, slice(whole, None)), along(array, axis, slice(None, whole))], axis)  # type: ignore[no-any-return]


def _rolled_by(array: Traced, shift: Traced, axis: int) -> Traced:
    """The same by a shift that only the compiled code knows: a gather."""
    if shift.dtype.kind not in "iu":
        raise UnsupportedError("a shift that is no int")
    shift = shift.astype(np.int64)
    size = SymInt(array.tracer, array.extents[axis])
    indices = (fresh(array.tracer, iota(array.extents[axis])) - shift % size) % size
    return along(array, axis, indices)  # type: ignore[no-any-return]


@overrides(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    array = of_array(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    first_axis, second_axis = axes_of(tuple(axes), array.ndim)
    if first_axis == second_axis:
        raise ValueError("Axes must be different.")
    turns = operator.index(k) % 4
    if turns == 0:
        return array[:]
    if turns == 2:
        return flip(flip(array, first_axis), second_axis)
    order = list(range(array.ndim))
    order[first_axis], order[second_axis] = second_axis, first_axis
    return transpose(flip(array, second_axis), order) if turns == 1 else flip(transpose(array, order), second_axis)


@overrides(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    array = of_array(a)
    if is_given(prepend) or is_given(append) or type(n) is not int:
        raise UnsupportedError("diff with these options")
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    position = axes_of((axis,), array.ndim)[0]
    apart = np.not_equal if array.dtype == bool else np.subtract
    for _ in range(n):
        array = apart(along(array, position, slice(1, None)), along(array, position, slice(None, -1)))
    return array


@overrides(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    array = of_array(ary)
    position = axes_of((axis,), array.ndim)[0]
    if isinstance(indices_or_sections, tuple | list):
        cuts = [0, *indices_or_sections, None]
    else:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extras = divmod(int(array.extents[position]), sections)
        cuts = [0]
        for i in range(sections):
            cuts.append(cuts[-1] + each + (1 if i < extras else 0))
    return [along(array, position, slice(start, stop)) for start, stop in itertools.pairwise(cuts)]


@overrides(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    array = of_array(ary)
    if isinstance(indices_or_sections, tuple | list):
        return array_split(array, indices_or_sections, axis)
    position = axes_of((axis,), array.ndim)[0]
    sections = operator.index(indices_or_sections)
    extent = array.extents[position]
    if extent % sections != 0:
        raise ValueError("array split does not result in an equal division")
    each = extent // sections
    part: Any = each if type(each) is int else SymInt(array.tracer, each)
    return [along(array, position, slice(i * part, (i + 1) * part)) for i in range(sections)]


@overrides(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    operand_array = of_array(array)
    widths = _widths(pad_width, operand_array.ndim)
    values = _widths(keywords.pop("constant_values", 0), operand_array.ndim) if mode == "constant" else None
    if keywords or mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise UnsupportedError(f"pad with mode {mode!r} and these options")
    result = operand_array
    for axis, (before, after) in enumerate(widths):
        if not (symbolic_dims.same(before, 0) and symbolic_dims.same(after, 0)):
            result = _padded(result, axis, before, after, mode, values[axis] if values else None)
    created = fresh(operand_array.tracer, result.node)
    if operand_array.ndim > 1 and operand_array.view.is_c() is not True and transpose(operand_array).view.is_c():
        columns = range(1, operand_array.ndim + 1)  # pad keeps Fortran order, and otherwise uses C order
        created.view.storage.set_layout_like(columns)
    return created


def _widths(width: Any, ndim: int) -> list[Any]:
    """Pairs for all dimensions."""
    if isinstance(width, dict):
        raise UnsupportedError("pad with a dict")
    if not isinstance(width, tuple | list):
        return [(width, width)] * ndim
    if all(not isinstance(pair_of_axis, tuple | list) for pair_of_axis in width):
        pair = (width[0], width[0]) if len(width) == 1 else tuple(width)
        return [pair] * ndim
    pairs = [
        (pair_of_axis[0], pair_of_axis[0]) if len(pair_of_axis) == 1 else tuple(pair_of_axis) for pair_of_axis in width
    ]
    return pairs * ndim if len(pairs) == 1 else pairs


def _padded(array: Traced, axis: int, before: Any, after: Any, mode: str, values: Any) -> Traced:
    extent = array.extents[axis]
    first, last = as_extent(before), as_extent(after)
    if first < 0 or last < 0:
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        parts: list[Any] = [_constant(array, axis, first, values[0]), array, _constant(array, axis, last, values[1])]
    elif mode == "edge":
        if extent == 0:
            raise UnsupportedError("pad of an empty array")
        parts = [_edge(array, axis, slice(0, 1), first), array, _edge(array, axis, slice(-1, None), last)]
    else:
        shift = 1 if mode == "reflect" else 0
        if first > extent - shift or last > extent - shift or extent < 2:
            raise UnsupportedError("pad by more elements than the array has")
        before_count, after_count, size = (_whole(array, number) for number in (first, last, extent))
        if mode == "wrap":
            parts = [
                along(array, axis, slice(size - before_count, None)),
                array,
                along(array, axis, slice(None, after_count)),
            ]
        else:
            parts = [
                flip(along(array, axis, slice(shift, before_count + shift)), axis) if first > 0 else None,
                array,
                flip(along(array, axis, slice(size - after_count - shift, size - shift)), axis) if last > 0 else None,
            ]
    remaining = [part for part in parts if part is not None and not symbolic_dims.same(part.extents[axis], 0)]
    return joined(remaining or [array], axis, named=True)  # type: ignore[no-any-return]


def _whole(array: Traced, value: Number) -> Any:
    return value if type(value) is int else SymInt(array.tracer, value)


def _constant(array: Traced, axis: int, count: Number, value: Any) -> Traced:
    tracer = array.tracer
    shape = [count if i == axis else extent for i, extent in enumerate(array.extents)]
    number = operand(tracer, value)
    if type(number) is float and array.dtype.kind != "f":
        raise UnsupportedError("pad of ints with a float")
    return fresh(tracer, builder.broadcast_to(cast_to(tracer, number, array.dtype.name), shape))


def _edge(array: Traced, axis: int, part: slice, count: Number) -> Traced:
    shape = [count if i == axis else extent for i, extent in enumerate(array.extents)]
    return broadcast_to(along(array, axis, part), tuple(_whole(array, extent) for extent in shape))  # type: ignore[no-any-return]


@overrides(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    tracer = tracer_of()
    left, right = traced(tracer, arr), traced(tracer, values)
    if axis is None:
        left, right, axis = ravel(left), ravel(right), 0
    return concatenate([left, right], axis)


@overrides(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """One number at a known index; NumPy inserts anything else."""
    array = of_array(arr)
    number = traced(array.tracer, values)
    if axis is None:
        array, axis = ravel(array), 0
    (place,) = axes_of((axis,), array.ndim)
    extent = array.extents[place]
    if type(obj) is not int or number.ndim or not np.can_cast(number.dtype, array.dtype, "same_kind"):
        raise UnsupportedError("numpy.insert of several values")
    if not intervals.guarded_at_least_zero(extent + obj if obj < 0 else extent - obj):
        raise UnsupportedError("numpy.insert at an index that may be out of bounds")
    shape = [1 if i == place else size for i, size in enumerate(array.shape)]
    inserted = broadcast_to(METHODS["astype"](number, array.dtype), shape)
    before, behind = along(array, place, slice(None, obj)), along(array, place, slice(obj, None))
    return joined([before, inserted, behind], place)


@overrides(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    array = of_array(v)
    shift = as_extent(k)
    if array.ndim == 2:
        return np.diagonal(array, k)
    if array.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = array.extents[0] + abs(shift)
    zeros = builder.broadcast_to(builder.constant(0, array.dtype.name), (size, size))
    start = (0, shift) if shift >= 0 else (-shift, 0)
    options = {"map": ((start[0], ((0, 1),)), (start[1], ((0, 1),))), "extents": array.extents}
    return fresh(array.tracer, Node("update", (zeros, array.node), array.dtype.name, (size, size), options))


@overrides(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    left, right = of_array(a), of_array(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    left, right = moveaxis(left, axisa, -1), moveaxis(right, axisb, -1)
    if left.extents[-1] != 3 or right.extents[-1] != 3:
        raise UnsupportedError("cross of vectors of other than three elements")
    x = [left[..., i] for i in range(3)]
    y = [right[..., i] for i in range(3)]
    parts = [x[i] * y[j] - x[j] * y[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(np.stack(parts, axis=-1), -1, axisc)
