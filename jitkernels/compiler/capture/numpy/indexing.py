"""Indexing of traced arrays: keys of ints and slices are views, arrays of ints gather and scatter, masks choose."""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.frontends.flow import elements, fitting, moving
from jitkernels.frontends.flow.rows import Row
from jitkernels.frontends.masked import Masked
from jitkernels.frontends.tables import serves
from jitkernels.frontends.traced import Traced, fresh, result, traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import cast_to, kind_of, operand
from jitkernels.frontends.whole import Whole
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.ir import Node
from jitkernels.graph.layouts import order_like

INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
    "indices"
)


class Picked(NamedTuple):
    """A key taken apart: the view by its slices, and arrays for some of the view's dimensions."""

    map: tuple[Any, ...]
    shape: tuple[Number, ...]
    arrays: tuple[tuple[int, Any], ...]
    is_split: bool
    is_element: bool


@serves("getitem")
def getitem(given: Traced, key: Any) -> Any:
    """``given[key]``."""
    parts = elements.key_of(given, key)
    if parts is not None:
        return elements.read(given, parts)
    mask = _mask_of(given, key)
    if mask is not None:
        return Masked(given, mask)
    picked = take_apart(given, key)
    if not picked.arrays:
        if picked.is_element:
            return result(given.tracer, construct.view(given.node, picked.map, ()))
        if given.is_scalar:
            return fresh(given.tracer, construct.view(given.node, picked.map, picked.shape))
        return given.region(picked.map, picked.shape)
    base, axis, indices = _gathered(given, picked)
    if given.tracer.depth and not indices[0].ndim:
        return Traced(given.tracer, Row(base.view, axis, indices))
    node = base.node
    shape = (*node.shape[:axis], *indices[0].shape, *node.shape[axis + len(indices) :])
    made = Node("gather", (node, *indices), node.dtype, shape, _options(given.tracer, axis))
    _look_at(given.tracer, made)
    found = fresh(given.tracer, made, is_scalar=picked.is_element and not shape, is_c=base.ndim == 1 or None)
    if len(shape) > 1:
        found.view.storage.lie_like(_strides_of_picked(base, axis, indices, shape))
    if shape and all(type(one) is Traced and one.is_scalar for _, one in picked.arrays):
        found.view.storage.doubt(base.view.storage)  # of numbers that are known, NumPy makes a view
    return found


@serves("setitem")
def setitem(given: Traced, key: Any, value: Any) -> None:
    """``given[key] = value``."""
    tracer = given.tracer
    _check_range(given, value)
    fitting.check_assigned(given, value)
    parts = elements.key_of(given, key)
    if parts is not None:
        elements.refuse(given, value)
        elements.write(given, parts, assigned(tracer, value, given.node.dtype, ()))
        return
    mask = _mask_of(given, key)
    if mask is not None:
        _set_masked(given, mask, value)
        return
    if type(value) is Masked:
        raise UnknownError("elements chosen by a mask are assigned to elements that are not")
    picked = take_apart(given, key)
    if not picked.arrays:
        target = given.region(picked.map, picked.shape)
        dimensions: int = getattr(operand(tracer, value), "ndim", 0)
        if not picked.shape and dimensions:
            raise UnknownError("an array is assigned to one element")  # which NumPy refuses, or warns of
        target.view.write(assigned(tracer, value, given.node.dtype, picked.shape))
        return
    base, axis, indices = _gathered(given, picked)
    node = base.node
    shape = (*node.shape[:axis], *indices[0].shape, *node.shape[axis + len(indices) :])
    values = assigned(tracer, value, node.dtype, shape)
    made = _placed(node, values, indices, _options(tracer, axis))
    _look_at(tracer, made)
    base.view.write(made)


def _check_range(given: Traced, value: Any) -> None:
    """Have NumPy raise where a single float that is assigned to ints is none that they can be."""
    is_float = type(value) is Traced and (value.is_scalar or value.is_weak) and value.dtype.kind == "f"
    if not is_float or given.dtype.kind not in "iu":
        return
    info, node = np.iinfo(given.dtype), construct.cast(value.node, "float64")
    is_wide = info.bits == 64 and info.min < 0  # where one less is no other float
    low = construct.constant(float(info.min - (not is_wide)), "float64")
    high = construct.constant(float(int(info.max) + 1), "float64")
    above = construct.elementwise("greater_equal" if is_wide else "greater", node, low)
    inside = construct.elementwise("logical_and", above, construct.elementwise("less", node, high))
    given.tracer.checks.append(construct.elementwise("logical_not", inside))


@serves("ufunc.at")
def at_ufunc(tracer: Tracer, ufunc: Any, given: Any, key: Any, value: Any = None, /) -> None:
    """``ufunc.at``, which takes equal indices one after another: sums and differences."""
    picked = take_apart(given, key) if type(given) is Traced and ufunc in (np.add, np.subtract) else None
    if picked is None or not picked.arrays or given.dtype == "bool":
        raise UnknownError(f"numpy.{ufunc.__name__}.at")
    base, axis, indices = _gathered(given, picked)
    node = base.node
    if not np.can_cast(traced(tracer, value).dtype, node.dtype, "same_kind"):
        raise UnknownError(f"numpy.{ufunc.__name__}.at of other types")
    shape = (*node.shape[:axis], *indices[0].shape, *node.shape[axis + len(indices) :])
    values = assigned(tracer, value, node.dtype, shape)
    if ufunc is np.subtract:
        values = construct.elementwise("negative", values)
    made = _placed(node, values, indices, {**_options(tracer, axis), "adds": True})
    _look_at(tracer, made)
    base.view.write(made)


def _options(tracer: Tracer, axis: int) -> dict[str, Any]:
    """How numbers pick: in loops and branches, where each is looked at before, none lies beside."""
    return {"axis": axis, "is_inside": True} if tracer.depth else {"axis": axis}


def _placed(array: Node, values: Node, numbers: Sequence[Node], options: dict[str, Any]) -> Node:
    """An array with values where numbers say, of one dimension: of those for the same element the last counts."""
    axis, shape = options["axis"], numbers[0].shape
    if len(shape) > 1:
        count = extents.product(shape)
        numbers = [construct.reshape(one, (count,)) for one in numbers]
        values = construct.reshape(values, (*values.shape[:axis], count, *values.shape[axis + len(shape) :]))
    return Node("scatter", (array, values, *numbers), array.dtype, array.shape, options)


def _look_at(tracer: Tracer, made: Node) -> None:
    """Have numbers looked at also where nothing needs what they pick."""
    if not tracer.depth:
        tracer.picks.append(made)


def assigned(tracer: Tracer, value: Any, dtype: str, shape: Sequence[Number]) -> Node:
    """What is assigned, in the dtype and shape of where it goes; ones in front of it are dropped."""
    given = operand(tracer, value)
    if type(given) is float and np.dtype(dtype).kind in "iub":
        given = np.float64(given)
        if not np.isfinite(given):
            raise UnknownError("assignment of an infinite number or NaN to ints")
    node = cast_to(tracer, given, dtype)
    while node.ndim > len(shape) and (extents.same(node.shape[0], 1) or bool(node.shape[0] == 1)):
        node = construct.squeeze(node, (0,))
    return construct.broadcast_to(node, shape)


def take_apart(given: Traced, key: Any) -> Picked:
    """A key for an array. Raises IndexError as NumPy does."""
    parts = list(key) if isinstance(key, tuple) else [key]
    taken = sum(1 for one in parts if one is not None and one is not Ellipsis)
    dots = [i for i, one in enumerate(parts) if one is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if taken > given.ndim:
        raise IndexError(
            f"too many indices for array: array is {given.ndim}-dimensional, but {taken} were indexed"
        )
    where = dots[0] if dots else len(parts)
    parts[where : where + 1] = [slice(None)] * (given.ndim - taken)
    index_map: list[Any] = []
    shape: list[Number] = []
    arrays: list[tuple[int, Any]] = []
    advanced = [_is_array(one) for one in parts]
    several = any(advanced)
    positions = []
    dimension = 0
    for position, one in enumerate(parts):
        if one is None:
            shape.append(1)
            continue
        extent = given.extents[dimension]
        dimension += 1
        if type(one) is slice:
            start, step, count = sliced(one, extent)
            index_map.append((start, ((len(shape), step),)))
            shape.append(count)
        elif advanced[position]:
            arrays.append((len(shape), one))
            positions.append(position)
            index_map.append((0, ((len(shape), 1),)))
            shape.append(extent)
        elif several:
            arrays.append((len(shape), one if type(one) is Traced else _inside(one, extent, dimension - 1)))
            positions.append(position)
            index_map.append((0, ((len(shape), 1),)))
            shape.append(extent)
        else:
            index_map.append((_inside(one, extent, dimension - 1), ()))
    is_split = bool(positions) and positions != list(range(positions[0], positions[0] + len(positions)))
    is_element = not dots and len(arrays) == len(shape)
    return Picked(tuple(index_map), tuple(shape), tuple(arrays), is_split, is_element)


def _is_array(value: Any) -> bool:
    if type(value) is Traced:
        if value.tracer.depth and moving.is_counted(value):
            return moving.is_computed(value)
        return (
            value.ndim > 0
            or value.node.operation != "input"
            or value.dtype.kind == "b"
            or not value.is_scalar
        )
    return isinstance(value, np.ndarray | list)


def _inside(value: Any, extent: Number, axis: int) -> Number:
    """An int index, from 0 on."""
    if isinstance(value, bool | np.bool_):
        raise UnknownError("a bool as an index")
    if isinstance(value, float) or (type(value) is Traced and value.dtype.kind not in "iu"):
        raise IndexError(INVALID)
    try:
        index = given = moving.as_number(value)
    except TypeError:
        raise IndexError(INVALID) from None
    if index < 0:
        index = index + extent
    if index < 0 or index >= extent:
        found, size = extents.value_of(given), extents.value_of(extent)
        raise IndexError(f"index {found} is out of bounds for axis {axis} with size {size}")
    return index


def sliced(one: slice, extent: Number) -> tuple[Number, Number, Number]:
    """Start, step and number of elements of a slice: `slice.indices` with symbols."""
    step = 1 if one.step is None else operator.index(one.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step > 0:
        start = _bound(one.start, extent, 0, extent) if one.start is not None else 0
        stop = _bound(one.stop, extent, 0, extent) if one.stop is not None else extent
        distance = stop - start
    else:
        start = _bound(one.start, extent, -1, extent - 1) if one.start is not None else extent - 1
        stop = _bound(one.stop, extent, -1, extent - 1) if one.stop is not None else -1
        distance = start - stop
    if extents.is_moving(distance):
        if not distance >= 0:
            return 0, step, 0
    elif distance <= 0:
        return 0, step, 0
    count = distance if abs(step) == 1 else (distance + (abs(step) - 1)) // abs(step)
    return start, step, _settled(count)


def _settled(count: Number) -> Number:
    """A number of elements; one is a number of the code, as NumPy treats it in ways of its own."""
    if isinstance(count, Extent) and not extents.is_moving(count) and count == 1:
        return 1
    return count


def _bound(value: Any, extent: Number, lowest: Number, highest: Number) -> Number:
    bound = moving.as_number(value)
    if bound < 0:
        bound = bound + extent
        return lowest if bound < lowest else bound
    return highest if bound > highest else bound


def _strides_of_picked(
    base: Traced, axis: int, indices: Sequence[Node], shape: Sequence[Number]
) -> tuple[Number, ...] | None:
    """Strides of what is picked: dimensions of the indices are outermost, others lie as those of the array do."""
    strides, count = base.view.strides(), indices[0].ndim
    if strides is None:
        return None
    own = tuple(range(axis, axis + count))
    others = [i for i in range(len(shape)) if i not in own]
    left = [step for i, step in enumerate(strides) if not axis <= i < axis + len(indices)]
    order = order_like([shape[i] for i in others], left) or range(len(others))
    return construct.contiguous(shape, (*own, *(others[i] for i in order)))


def _gathered(given: Traced, picked: Picked) -> tuple[Traced, int, list[Node]]:
    """The view that arrays index, its first indexed dimension, and the arrays in one shape."""
    tracer = given.tracer
    base = given.region(picked.map, picked.shape)
    dimensions = [dimension for dimension, _ in picked.arrays]
    axis = dimensions[0]
    if picked.is_split or dimensions != list(range(axis, axis + len(dimensions))):
        order = [*dimensions, *(i for i in range(base.ndim) if i not in dimensions)]
        index_map = tuple((0, ((order.index(i), 1),)) for i in range(base.ndim))
        base = base.region(index_map, [base.extents[i] for i in order])
        axis = 0
    nodes = [_indices(tracer, one) for _, one in picked.arrays]
    if tracer.depth:
        nodes = [
            elements.inside(tracer, one, node, extent)
            for (_, one), node, extent in zip(picked.arrays, nodes, base.extents[axis:], strict=False)
        ]
    shape = construct.broadcast_shapes([node.shape for node in nodes])
    return base, axis, [construct.broadcast_to(node, shape) for node in nodes]


def _indices(tracer: Tracer, value: Any) -> Node:
    if type(value) is Whole or isinstance(value, Extent) or type(value) is int:
        return cast_to(tracer, value, "int64")
    array = traced(tracer, value)
    if isinstance(value, list) and not value:
        return construct.cast(array.node, "int64")
    if array.dtype.kind not in "iu":
        if array.dtype.kind == "b":
            raise UnknownError("a mask for some of the dimensions")
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if not array.ndim and array.dtype == np.uint64:
        raise UnknownError(
            "one number of uint64 as an index"
        )  # which NumPy refuses where int64 cannot hold it
    return construct.cast(array.node, "int64")


def _mask_of(given: Traced, key: Any) -> Traced | None:
    """The mask, where the key is one of the array's own shape, or of its first dimensions."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if type(key) is not Traced or key.dtype.kind != "b" or key.ndim == 0:
        return None
    if key.ndim > given.ndim:
        raise IndexError("too many indices for array")
    for i, (one, other) in enumerate(zip(key.extents, given.extents, strict=False)):
        if not extents.same(one, other) and one != other:
            raise IndexError(
                f"boolean index did not match indexed array along axis {i}; size of axis is "
                f"{extents.value_of(other)} but size of corresponding boolean axis is {extents.value_of(one)}"
            )
    return key


def _set_masked(given: Traced, mask: Traced, value: Any) -> None:
    tracer = given.tracer
    if type(value) is Masked:
        chosen = value.assigned_to(given, mask)
    else:
        one = operand(tracer, value)
        chosen = (
            cast_to(tracer, one, given.node.dtype)
            if kind_of(one) is not float
            else _number(tracer, one, given)
        )
        rest = given.extents[mask.ndim :]
        if chosen.ndim > len(rest):
            raise UnknownError("an array is assigned to elements chosen by a mask")
        chosen = construct.broadcast_to(chosen, rest)
    full = mask.node
    if mask.ndim < given.ndim:
        full = construct.expand_dims(full, range(mask.ndim, given.ndim))
    given.view.write(Node("where", (full, chosen, given.node), given.node.dtype, given.extents))


def _number(tracer: Tracer, value: Any, given: Traced) -> Node:
    return assigned(tracer, value, given.node.dtype, ())
