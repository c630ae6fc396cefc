"""Indexing of traced arrays: ints and slices are views, int arrays gather and scatter, boolean masks select."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.dynamic.dynamic_array import DynamicArray, is_int
from jitkernels.compiler.capture.dynamic.dynamic_gather import gathered, scatter_elements, update_elements
from jitkernels.compiler.capture.dynamic.dynamic_slice import dynamic_slice
from jitkernels.compiler.capture.ints import element_access, induction_symbols, int_cast_checks
from jitkernels.compiler.capture.ints.dynamic_row_view import DynamicRow, UncheckedRow
from jitkernels.compiler.capture.ints.slice_bounds import slice_extents, with_signed_ints
from jitkernels.compiler.capture.numpy.concatenate import stacked
from jitkernels.compiler.capture.numpy.masked_proxy import Masked
from jitkernels.compiler.capture.numpy.ufuncs import cast_to, kind_of, operand
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.memory_order import order_like
from jitkernels.compiler.ir.symbolic_dims import Extent, Number
from jitkernels.compiler.ir.unsupported import UnknownSizeError

INVALID = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are valid "
    "indices"
)


class IndexKey(NamedTuple):
    """A parsed index key: the view by its ints and slices, and index arrays for some of the view's dimensions."""

    map: tuple[Any, ...]
    shape: tuple[Number, ...]
    arrays: tuple[tuple[int, Any], ...]
    is_split: bool
    is_element: bool


@serves("getitem")
def getitem(array: Traced, key: Any) -> Any:
    parts = element_access.element_index(array, key)
    if parts is not None:
        return element_access.read(array, parts)
    array, key = _behind_mask(array, key)
    mask = _mask_of(array, key)
    if mask is not None:
        return Masked(array, mask)
    if type(key) is Masked:
        key = key.dense()
    array, key = _along_indices(array, key)
    if isinstance(key, DynamicArray):
        return gathered(array, key)
    key = with_signed_ints(key)
    part = dynamic_slice(array, key)
    if part is not None:
        return part
    index_key = parse_key(array, key)
    if not index_key.arrays:
        if index_key.is_element:
            return result(array.tracer, builder.view(array.node, index_key.map, ()))
        if array.is_scalar:
            return fresh(array.tracer, builder.view(array.node, index_key.map, index_key.shape))
        return array.region(index_key.map, index_key.shape)
    base, axis, indices = _gathered(array, index_key)
    if array.tracer.depth and not indices[0].ndim:
        return Traced(array.tracer, DynamicRow(base.view, axis, indices))
    if _selects_row(array.tracer, index_key):
        row = UncheckedRow(array.tracer, base.view, axis, indices)
        _keep_bounds_check(array.tracer, row.node)
        return Traced(array.tracer, row)
    node = base.node
    shape = (*node.shape[:axis], *indices[0].shape, *node.shape[axis + len(indices) :])
    created = Node("gather", (node, *indices), node.dtype, shape, _options(array.tracer, axis))
    _keep_bounds_check(array.tracer, created)
    outcome = fresh(array.tracer, created, is_scalar=index_key.is_element and not shape, is_c=base.ndim == 1 or None)
    if len(shape) > 1:
        outcome.view.storage.set_layout_like(_strides_of_gather(base, axis, indices, shape))
    if shape and _are_numbers(index_key):
        outcome.view.storage.note_may_alias(base.view.storage)  # for concrete indices NumPy returns a view
    return outcome


def _are_numbers(index_key: IndexKey) -> bool:
    return all(type(index_array) is Traced and index_array.is_scalar for _, index_array in index_key.arrays)


def _selects_row(tracer: Tracer, index_key: IndexKey) -> bool:
    """Whether a key outside of loops selects a view at computed numbers."""
    is_view = len(index_key.arrays) < len(index_key.shape) and _are_numbers(index_key)
    return is_view and not tracer.depth and not tracer.differentiates


@serves("setitem")
def setitem(array: Traced, key: Any, value: Any) -> None:
    tracer = array.tracer
    int_cast_checks.check_assigned(array, value)
    parts = element_access.element_index(array, key)
    if parts is not None:
        element_access.check_assignment(array, value)
        element_access.write(array, parts, assigned(tracer, value, array.node.dtype, ()))
        return
    array, key = _behind_mask(array, key)
    mask = _mask_of(array, key)
    if mask is not None:
        _set_masked(array, mask, value)
        return
    if type(key) is Masked:
        key = key.dense()
    array, key = _along_indices(array, key)
    if isinstance(key, DynamicArray):
        scatter_elements(array, key, value)
        return
    key = with_signed_ints(key)
    part = dynamic_slice(array, key)
    if part is not None:
        part.assign(value)
        return
    if type(value) is Masked:
        raise UnsupportedError("an assignment of masked elements to unmasked ones")
    index_key = parse_key(array, key)
    if not index_key.arrays:
        target = array.region(index_key.map, index_key.shape)
        dimensions: int = getattr(operand(tracer, value), "ndim", 0)
        if not index_key.shape and dimensions:
            raise UnsupportedError("an array is assigned to one element")  # NumPy raises, or warns
        target.view.write(assigned(tracer, value, array.node.dtype, index_key.shape))
        return
    base, axis, indices = _gathered(array, index_key)
    node = base.node
    shape = (*node.shape[:axis], *indices[0].shape, *node.shape[axis + len(indices) :])
    values = assigned(tracer, value, node.dtype, shape)
    scattered = _scatter(node, values, indices, _options(tracer, axis))
    _keep_bounds_check(tracer, scattered)
    base.view.write(scattered)


def _along_indices(array: Traced, key: Any) -> tuple[Traced, Any]:
    """A view and indices of computed number, for a key of these and ints, or of these and all of other dimensions."""
    if type(key) is not tuple:
        return array, key
    parts = tuple(part.dense() if type(part) is Masked else part for part in key)
    places = [i for i, part in enumerate(parts) if isinstance(part, DynamicArray)]
    if len(places) != 1 or parts[places[0]].dtype == "bool":
        return array, key
    indices, others = parts[places[0]], [*parts[: places[0]], *parts[places[0] + 1 :]]
    if places == [0] and all(type(part) is slice and part == slice(None) for part in others):
        return array, indices
    if len(parts) != array.ndim or not all(map(is_int, others)):
        raise UnknownSizeError("indices of computed number beside slices, or other index arrays")
    return array[(*parts[: places[0]], slice(None), *parts[places[0] + 1 :])], indices


@serves("ufunc.at")
def at_ufunc(tracer: Tracer, ufunc: Any, array: Any, key: Any, value: Any = None, /) -> None:
    """``ufunc.at``, which applies repeated indices repeatedly: sums and differences at once, others by a loop."""
    if type(array) is not Traced:
        raise UnsupportedError(f"numpy.{ufunc.__name__}.at of an array of computed length")
    if type(key) is Masked:
        key = key.dense()
    if ufunc not in (np.add, np.subtract) or array.dtype == "bool" or isinstance(key, DynamicArray):
        update_elements(ufunc, array, key, value)
        return
    index_key = parse_key(array, key)
    if not index_key.arrays:
        raise UnsupportedError(f"numpy.{ufunc.__name__}.at without an index array")
    base, axis, indices = _gathered(array, index_key)
    node = base.node
    if not np.can_cast(traced(tracer, value).dtype, node.dtype, "same_kind"):
        raise UnsupportedError(f"numpy.{ufunc.__name__}.at of other types")
    shape = (*node.shape[:axis], *indices[0].shape, *node.shape[axis + len(indices) :])
    values = assigned(tracer, value, node.dtype, shape)
    if ufunc is np.subtract:
        values = builder.elementwise("negative", values)
    scattered = _scatter(node, values, indices, {**_options(tracer, axis), "adds": True})
    _keep_bounds_check(tracer, scattered)
    base.view.write(scattered)


def _options(tracer: Tracer, axis: int) -> dict[str, Any]:
    """Options of a gather or scatter: in loops and branches the indices have been checked before."""
    return {"axis": axis, "is_inside": True} if tracer.depth else {"axis": axis}


def _scatter(array: Node, values: Node, numbers: Sequence[Node], options: dict[str, Any]) -> Node:
    """A scatter at one-dimensional indices: of values for the same element the last one wins."""
    axis, shape = options["axis"], numbers[0].shape
    if len(shape) > 1:
        count = symbolic_dims.product(shape)
        numbers = [builder.reshape(number, (count,)) for number in numbers]
        values = builder.reshape(values, (*values.shape[:axis], count, *values.shape[axis + len(shape) :]))
    return Node("scatter", (array, values, *numbers), array.dtype, array.shape, options)


def _keep_bounds_check(tracer: Tracer, node: Node) -> None:
    """Keep the bounds checks of a gather or scatter even if nothing uses its result."""
    if not tracer.depth:
        tracer.picks.append(node)


def assigned(tracer: Tracer, value: Any, dtype: str, shape: Sequence[Number]) -> Node:
    """The assigned value in the dtype and shape of its target; leading unit dimensions are dropped."""
    is_list = isinstance(value, list | tuple)
    node = stacked(tracer, value, dtype).node if is_list else cast_to(tracer, operand(tracer, value), dtype)
    while node.ndim > len(shape) and node.shape[0] == 1:
        node = builder.squeeze(node, (0,))
    return builder.broadcast_to(node, shape)


def parse_key(array: Traced, key: Any) -> IndexKey:
    """Parse an index key. Raises IndexError as NumPy does."""
    parts = list(key) if isinstance(key, tuple) else [key]
    consumed = sum(1 for part in parts if part is not None and part is not Ellipsis)
    ellipses = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if consumed > array.ndim:
        raise IndexError(f"too many indices for array: array is {array.ndim}-dimensional, but {consumed} were indexed")
    position_of_ellipsis = ellipses[0] if ellipses else len(parts)
    parts[position_of_ellipsis : position_of_ellipsis + 1] = [slice(None)] * (array.ndim - consumed)
    index_map: list[Any] = []
    shape: list[Number] = []
    arrays: list[tuple[int, Any]] = []
    extents_of_array = iter(array.extents)
    advanced = [part is not None and _is_array(part, next(extents_of_array)) for part in parts]
    several = any(advanced)
    positions = []
    dimension = 0
    for position, item in enumerate(parts):
        if item is None:
            shape.append(1)
            continue
        extent = array.extents[dimension]
        dimension += 1
        if type(item) is slice:
            start, step, count = slice_extents(item, extent)
            index_map.append((start, ((len(shape), step),)))
            shape.append(count)
        elif advanced[position]:
            arrays.append((len(shape), item))
            positions.append(position)
            index_map.append((0, ((len(shape), 1),)))
            shape.append(extent)
        elif several:
            arrays.append((len(shape), item if type(item) is Traced else _inside(item, extent, dimension - 1)))
            positions.append(position)
            index_map.append((0, ((len(shape), 1),)))
            shape.append(extent)
        else:
            index_map.append((_inside(item, extent, dimension - 1), ()))
    is_split = bool(positions) and positions != list(range(positions[0], positions[0] + len(positions)))
    is_element = not ellipses and len(arrays) == len(shape)
    return IndexKey(tuple(index_map), tuple(shape), tuple(arrays), is_split, is_element)


def _is_array(value: Any, extent: Number) -> bool:
    """Whether an index is an array, or an int of a loop that needs a bounds check at run time."""
    if type(value) is Traced:
        if value.tracer.depth and induction_symbols.is_traced_int(value):
            return induction_symbols.has_no_extent(value) or not _is_inside(induction_symbols.extent_of(value), extent)
        return value.ndim > 0 or value.node.operation != "input" or value.dtype.kind == "b" or not value.is_scalar
    return isinstance(value, np.ndarray | list)


def _is_inside(index: Number, extent: Number) -> bool:
    """Whether an index is in bounds, at least in the loops of this call."""
    if not symbolic_dims.is_loop_variant(index - extent):
        return True  # otherwise NumPy's error is raised
    is_natural = dim_bounds.is_surely(index, ">=")
    if is_natural is None:
        return False
    apart = extent - 1 - index if is_natural else index + extent
    return dim_bounds.is_surely(apart, ">=") is True


def _inside(value: Any, extent: Number, axis: int) -> Number:
    """A nonnegative int index."""
    if isinstance(value, bool | np.bool_):
        raise UnsupportedError("a bool as an index")
    if isinstance(value, float) or (type(value) is Traced and value.dtype.kind not in "iu"):
        raise IndexError(INVALID)
    try:
        index = array = induction_symbols.extent_of(value)
    except TypeError:
        raise IndexError(INVALID) from None
    if index < 0:
        index = index + extent
    if index < 0 or index >= extent:
        number, size = symbolic_dims.value_of(array), symbolic_dims.value_of(extent)
        raise IndexError(f"index {number} is out of bounds for axis {axis} with size {size}")
    return index


def _strides_of_gather(
    base: Traced, axis: int, indices: Sequence[Node], shape: Sequence[Number]
) -> tuple[Number, ...] | None:
    """Strides of a gather's result: index dimensions are outermost, others keep the array's order."""
    strides, count = base.view.strides(), indices[0].ndim
    if strides is None:
        return None
    own = tuple(range(axis, axis + count))
    others = [i for i in range(len(shape)) if i not in own]
    left = [step for i, step in enumerate(strides) if not axis <= i < axis + len(indices)]
    order = order_like([shape[i] for i in others], left) or range(len(others))
    return builder.contiguous(shape, (*own, *(others[i] for i in order)))


def _gathered(array: Traced, index_key: IndexKey) -> tuple[Traced, int, list[Node]]:
    """The view that index arrays index, its first indexed dimension, and the index arrays broadcast to one shape."""
    tracer = array.tracer
    base = array.region(index_key.map, index_key.shape)
    dimensions = [dimension for dimension, _ in index_key.arrays]
    axis = dimensions[0]
    if index_key.is_split or dimensions != list(range(axis, axis + len(dimensions))):
        order = [*dimensions, *(i for i in range(base.ndim) if i not in dimensions)]
        index_map = tuple((0, ((order.index(i), 1),)) for i in range(base.ndim))
        base = base.region(index_map, [base.extents[i] for i in order])
        axis = 0
    nodes = [_indices(tracer, index_array) for _, index_array in index_key.arrays]
    if tracer.depth:
        nodes = [
            element_access.checked_indices(tracer, index_array, node, extent)
            for (_, index_array), node, extent in zip(index_key.arrays, nodes, base.extents[axis:], strict=False)
        ]
    shape = builder.broadcast_shapes([node.shape for node in nodes])
    return base, axis, [builder.broadcast_to(node, shape) for node in nodes]


def _indices(tracer: Tracer, value: Any) -> Node:
    if type(value) is SymInt or isinstance(value, Extent) or type(value) is int:
        return cast_to(tracer, value, "int64")
    array = traced(tracer, value)
    if isinstance(value, list) and not value:
        return builder.cast(array.node, "int64")
    if array.dtype.kind not in "iu":
        if array.dtype.kind == "b":
            raise UnsupportedError("a mask for some of the dimensions")
        raise IndexError("arrays used as indices must be of integer (or boolean) type")
    if not array.ndim and array.dtype == np.uint64:
        raise UnsupportedError("one number of uint64 as an index")  # NumPy raises where int64 cannot represent it
    return builder.cast(array.node, "int64")


def _behind_mask(array: Traced, key: Any) -> tuple[Traced, Any]:
    """``array[mask, i]`` as ``array[:, i][mask]``: the view and the mask; other arrays and keys as they are."""
    first, *others = key if type(key) is tuple and len(key) > 1 else (None,)
    if type(first) is not Traced or first.dtype.kind != "b" or first.ndim != 1:
        return array, key
    if not all(type(part) is slice for part in others) and not all(type(part) in (int, SymInt) for part in others):
        return array, key
    view = getitem(array, (slice(None), *others))
    return (view, first) if type(view) is Traced else (array, key)


def _mask_of(array: Traced, key: Any) -> Traced | None:
    """The boolean mask, where the key is one of the array's shape, or of its leading dimensions."""
    if isinstance(key, tuple) and len(key) == 1:
        key = key[0]
    if type(key) is not Traced or key.dtype.kind != "b" or key.ndim == 0:
        return None
    if key.ndim > array.ndim:
        raise IndexError("too many indices for array")
    for i, (extent, other) in enumerate(zip(key.extents, array.extents, strict=False)):
        if extent != other:
            raise IndexError(
                f"boolean index did not match indexed array along axis {i}; size of axis is "
                f"{symbolic_dims.value_of(other)} but size of corresponding boolean axis is "
                f"{symbolic_dims.value_of(extent)}"
            )
    return key


def _set_masked(array: Traced, mask: Traced, value: Any) -> None:
    tracer = array.tracer
    if type(value) is Masked:
        chosen = value.assigned_to(array, mask)
    else:
        number = operand(tracer, value)
        is_float = kind_of(number) is float
        dtype = array.node.dtype
        chosen = assigned(tracer, number, dtype, ()) if is_float else cast_to(tracer, number, dtype)
        rest = array.extents[mask.ndim :]
        if chosen.ndim > len(rest):
            raise UnsupportedError("an array is assigned to elements chosen by a mask")
        chosen = builder.broadcast_to(chosen, rest)
    full = mask.node
    if mask.ndim < array.ndim:
        full = builder.expand_dims(full, range(mask.ndim, array.ndim))
    array.view.write(Node("where", (full, chosen, array.node), array.node.dtype, array.extents))
