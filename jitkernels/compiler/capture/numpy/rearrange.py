"""Functions that repeat, shift, join, split and pick elements: taken together from views, or gathered by numbers."""

import itertools
import operator
from typing import Any

import numpy as np

from jitkernels.frontends.creation import counted
from jitkernels.frontends.joining import concatenate, joined
from jitkernels.frontends.reductions import axes_of, is_given, tracer_of
from jitkernels.frontends.shaping import broadcast_to, flip, moveaxis, of_array, ravel, transpose
from jitkernels.frontends.tables import METHODS, implements
from jitkernels.frontends.traced import Traced, fresh, traced
from jitkernels.frontends.universal import cast_to, operand, stored
from jitkernels.frontends.whole import Whole, as_extent
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number
from jitkernels.graph.ir import Node


def along(given: Traced, axis: int, part: Any) -> Any:
    """A part of one dimension."""
    return given[(slice(None),) * axis + (part,)]


@implements(np.take, methods="take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    given = of_array(a)
    if mode != "raise":
        raise UnknownError("take with mode=")
    if axis is None:
        given, axis = ravel(given), 0
    position = axes_of(axis, given.ndim)[0]
    if type(indices) is int or type(indices) is Whole:
        found = along(given, position, indices)
        found = fresh(given.tracer, found.node, is_scalar=not found.ndim)
    else:
        chosen = traced(given.tracer, indices)
        if chosen.dtype.kind not in "iu":
            raise UnknownError("take by what is no int")
        found = along(given, position, chosen if chosen.ndim else chosen.region((), ()))
        found = fresh(given.tracer, found.node, is_scalar=found.is_scalar)
    return stored(given.tracer, found.node, out) if out is not None else found


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    given, key = _key_along(of_array(arr), of_array(indices), axis, "take_along_axis")
    return given[key]


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    if type(arr) is not Traced:
        raise UnknownError("put_along_axis of what is no array of the function")
    if axis is None and arr.ndim != 1:
        raise UnknownError("put_along_axis without an axis")
    given, key = _key_along(arr, of_array(indices), 0 if axis is None else axis, "put_along_axis")
    given[key] = values


def _key_along(given: Traced, chosen: Traced, axis: Any, name: str) -> tuple[Traced, Any]:
    """An array, and the key of those of its elements that numbers pick along an axis."""
    if axis is None:
        given, axis = ravel(given), 0
    if given.ndim != chosen.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    position = axes_of(axis, given.ndim)[0]
    key = []
    for i in range(given.ndim):
        if i == position:
            key.append(chosen)
            continue
        if not extents.same(given.extents[i], chosen.extents[i]) and given.extents[i] != chosen.extents[i]:
            raise UnknownError(f"{name} that broadcasts")
        numbers = construct.expand_dims(counted(given.extents[i]), [j for j in range(given.ndim) if j != i])
        key.append(fresh(given.tracer, numbers))
    return given, tuple(key)


@implements(np.repeat, methods="repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    given = of_array(a)
    if isinstance(repeats, tuple | list) and len(repeats) == 1:
        repeats = repeats[0]
    if type(repeats) not in (int, Whole, np.int64):
        raise UnknownError("repeat by an array")
    times = as_extent(repeats)
    if axis is None:
        given, axis = ravel(given), 0
    position = axes_of(axis, given.ndim)[0]
    node = construct.expand_dims(given.node, (position + 1,))
    shape = [*given.extents[: position + 1], times, *given.extents[position + 1 :]]
    spread = construct.broadcast_to(node, shape)
    joined = [*given.extents[:position], given.extents[position] * times, *given.extents[position + 1 :]]
    return fresh(given.tracer, construct.reshape(spread, joined))


@implements(np.tile)
def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    given = of_array(A)
    times = tuple(as_extent(one) for one in reps) if isinstance(reps, tuple | list) else (as_extent(reps),)
    total = max(given.ndim, len(times))
    times = (1,) * (total - len(times)) + times
    node = construct.expand_dims(given.node, range(total - given.ndim)) if total > given.ndim else given.node
    shape, joined = [], []
    for count, one in zip(times, node.shape, strict=True):
        shape += [count, one]
        joined.append(count * one)
    spread = construct.broadcast_to(construct.expand_dims(node, range(0, 2 * total, 2)), shape)
    return fresh(given.tracer, construct.reshape(spread, joined))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    given = of_array(a)
    if axis is None:
        flat = ravel(given)
        node = roll(flat, shift, 0).node if given.ndim else given.node
        return fresh(given.tracer, construct.reshape(node, given.extents))
    axes = axes_of(axis, given.ndim)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        axes = axes * len(shifts) if len(axes) == 1 else axes
    found = given
    for one, position in zip(shifts, axes, strict=True):
        found = _rolled(found, as_extent(one), position)
    made = fresh(given.tracer, found.node)
    if given.ndim > 1:
        made.view.storage.lie_like(given.view.strides())
    return made


def _rolled(given: Traced, shift: Number, axis: int) -> Traced:
    extent = given.extents[axis]
    if extents.same(extent, 0) or extents.same(extent, 1):
        return given
    if not (-extent < shift < extent):
        shift = shift % extent
    if shift == 0:
        return given
    cut = extent - shift if shift > 0 else -shift
    whole = Whole(given.tracer, cut)
    return concatenate([along(given, axis, slice(whole, None)), along(given, axis, slice(None, whole))], axis)  # type: ignore[no-any-return]


@implements(np.rot90)
def rot90(m: Any, k: Any = 1, axes: Any = (0, 1)) -> Any:
    given = of_array(m)
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    one, other = axes_of(tuple(axes), given.ndim)
    if one == other:
        raise ValueError("Axes must be different.")
    turns = operator.index(k) % 4
    if turns == 0:
        return given[:]
    if turns == 2:
        return flip(flip(given, one), other)
    order = list(range(given.ndim))
    order[one], order[other] = other, one
    return transpose(flip(given, other), order) if turns == 1 else flip(transpose(given, order), other)


@implements(np.diff)
def diff(a: Any, n: Any = 1, axis: Any = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    given = of_array(a)
    if is_given(prepend) or is_given(append) or type(n) is not int:
        raise UnknownError("diff with these options")
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    position = axes_of(axis, given.ndim)[0]
    apart = np.not_equal if given.dtype == bool else np.subtract
    for _ in range(n):
        given = apart(along(given, position, slice(1, None)), along(given, position, slice(None, -1)))
    return given


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    given = of_array(ary)
    position = axes_of(axis, given.ndim)[0]
    if isinstance(indices_or_sections, tuple | list):
        cuts = [0, *indices_or_sections, None]
    else:
        sections = operator.index(indices_or_sections)
        if sections <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, extras = divmod(int(given.extents[position]), sections)
        cuts = [0]
        for i in range(sections):
            cuts.append(cuts[-1] + each + (1 if i < extras else 0))
    return [along(given, position, slice(one, other)) for one, other in itertools.pairwise(cuts)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    given = of_array(ary)
    if isinstance(indices_or_sections, tuple | list):
        return array_split(given, indices_or_sections, axis)
    position = axes_of(axis, given.ndim)[0]
    sections = operator.index(indices_or_sections)
    extent = given.extents[position]
    if extent % sections != 0:
        raise ValueError("array split does not result in an equal division")
    each = extent // sections
    part: Any = each if type(each) is int else Whole(given.tracer, each)
    return [along(given, position, slice(i * part, (i + 1) * part)) for i in range(sections)]


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    given = of_array(array)
    widths = _widths(pad_width, given.ndim)
    values = _widths(keywords.pop("constant_values", 0), given.ndim) if mode == "constant" else None
    if keywords or mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise UnknownError(f"pad with mode {mode!r} and these options")
    found = given
    for axis, (before, after) in enumerate(widths):
        if not (extents.same(before, 0) and extents.same(after, 0)):
            found = _padded(found, axis, before, after, mode, values[axis] if values else None)
    made = fresh(given.tracer, found.node)
    if given.ndim > 1 and given.view.is_c() is not True and transpose(given).view.is_c():
        columns = range(1, given.ndim + 1)  # in which it lies if the array does and not otherwise
        made.view.storage.lie_like(columns)
    return made


def _widths(width: Any, ndim: int) -> list[Any]:
    """Pairs for all dimensions."""
    if isinstance(width, dict):
        raise UnknownError("pad with a dict")
    if not isinstance(width, tuple | list):
        return [(width, width)] * ndim
    if all(not isinstance(one, tuple | list) for one in width):
        pair = (width[0], width[0]) if len(width) == 1 else tuple(width)
        return [pair] * ndim
    pairs = [(one[0], one[0]) if len(one) == 1 else tuple(one) for one in width]
    return pairs * ndim if len(pairs) == 1 else pairs


def _padded(given: Traced, axis: int, before: Any, after: Any, mode: str, values: Any) -> Traced:
    extent = given.extents[axis]
    first, last = as_extent(before), as_extent(after)
    if first < 0 or last < 0:
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        parts: list[Any] = [
            _constant(given, axis, first, values[0]),
            given,
            _constant(given, axis, last, values[1]),
        ]
    elif mode == "edge":
        if extent == 0:
            raise UnknownError("pad of nothing")
        parts = [
            _edge(given, axis, slice(0, 1), first),
            given,
            _edge(given, axis, slice(-1, None), last),
        ]
    else:
        shift = 1 if mode == "reflect" else 0
        if first > extent - shift or last > extent - shift or extent < 2:
            raise UnknownError("pad by more than there is")
        one, other, size = (_whole(given, number) for number in (first, last, extent))
        if mode == "wrap":
            parts = [
                along(given, axis, slice(size - one, None)),
                given,
                along(given, axis, slice(None, other)),
            ]
        else:
            parts = [
                flip(along(given, axis, slice(shift, one + shift)), axis) if first > 0 else None,
                given,
                flip(along(given, axis, slice(size - other - shift, size - shift)), axis)
                if last > 0
                else None,
            ]
    kept = [one for one in parts if one is not None and not extents.same(one.extents[axis], 0)]
    return joined(kept or [given], axis, named=True)  # type: ignore[no-any-return]


def _whole(given: Traced, value: Number) -> Any:
    return value if type(value) is int else Whole(given.tracer, value)


def _constant(given: Traced, axis: int, count: Number, value: Any) -> Traced:
    tracer = given.tracer
    shape = [count if i == axis else one for i, one in enumerate(given.extents)]
    one = operand(tracer, value)
    if type(one) is float and given.dtype.kind != "f":
        raise UnknownError("pad of ints with a float")
    return fresh(tracer, construct.broadcast_to(cast_to(tracer, one, given.dtype.name), shape))


def _edge(given: Traced, axis: int, part: slice, count: Number) -> Traced:
    shape = [count if i == axis else one for i, one in enumerate(given.extents)]
    return broadcast_to(along(given, axis, part), tuple(_whole(given, one) for one in shape))  # type: ignore[no-any-return]


@implements(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    tracer = tracer_of()
    one, other = traced(tracer, arr), traced(tracer, values)
    if axis is None:
        one, other, axis = ravel(one), ravel(other), 0
    return concatenate([one, other], axis)


@implements(np.diag)
def diag(v: Any, k: Any = 0) -> Any:
    given = of_array(v)
    shift = as_extent(k)
    if given.ndim == 2:
        return np.diagonal(given, k)
    if given.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    size = given.extents[0] + abs(shift)
    zeros = construct.broadcast_to(construct.constant(0, given.dtype.name), (size, size))
    start = (0, shift) if shift >= 0 else (-shift, 0)
    options = {"map": ((start[0], ((0, 1),)), (start[1], ((0, 1),))), "extents": given.extents}
    return fresh(given.tracer, Node("update", (zeros, given.node), given.dtype.name, (size, size), options))


@implements(np.cross)
def cross(a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None) -> Any:
    one, other = of_array(a), of_array(b)
    if axis is not None:
        axisa = axisb = axisc = axis
    one, other = moveaxis(one, axisa, -1), moveaxis(other, axisb, -1)
    if one.extents[-1] != 3 or other.extents[-1] != 3:
        raise UnknownError("cross of vectors of other than three elements")
    x = [one[..., i] for i in range(3)]
    y = [other[..., i] for i in range(3)]
    parts = [x[i] * y[j] - x[j] * y[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return moveaxis(np.stack(parts, axis=-1), -1, axisc)


METHODS["put"] = lambda *_: _refuse("put")
METHODS["nonzero"] = lambda *_: _refuse("nonzero")


def _refuse(name: str) -> Any:
    raise UnknownError(f"ndarray.{name}")
