"""Shape and order of traced arrays: reshape, transpose, broadcast, flip, diagonals, copies."""

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, result, traced
from jitkernels.compiler.capture.numpy.numpy_callouts import call_with_shape_of
from jitkernels.compiler.capture.numpy.reductions import axes_of, dtype_name, is_given, tracer_of
from jitkernels.compiler.capture.override_registry import overrides, serves
from jitkernels.compiler.capture.symint import as_extent, as_symint
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import PLANES
from jitkernels.compiler.ir.symbolic_dims import Number


def extents_of(shape: Any) -> tuple[Number, ...]:
    """A shape argument."""
    if isinstance(shape, tuple | list):
        return tuple(as_extent(extent) for extent in shape)
    return (as_extent(shape),)


def of_array(a: Any) -> Traced:
    return traced(tracer_of(), a)


def copied(array: Traced, order: Any = "K", dtype: str | None = None) -> Traced:
    """A new array of the same elements, possibly in another dtype."""
    order = known_order(array, order)
    if order == "F":
        return transpose(copied(transpose(array), "C", dtype))  # type: ignore[no-any-return]
    node = array.node if dtype is None else builder.cast(array.node, dtype)
    if node is array.node:
        node = builder.copy(node)  # loops and branches identify arrays by their nodes
    result = fresh(array.tracer, node)
    if order != "C" and node.ndim > 1:
        result.view.storage.set_layout_like(array.view.strides())
    return result


def known_order(array: Traced, order: Any) -> str:
    """Resolve an order argument to C, F or K; A becomes the order of this array."""
    if order is None or order in ("C", "F", "K"):
        return order or "K"
    is_c, in_columns = array.view.is_c(), transpose(array).view.is_c()
    if order != "A" or (is_c is None and in_columns is not False):
        raise UnsupportedError(f"an array in order {order!r}")
    return "F" if in_columns and not is_c else "C"


@overrides(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    array = of_array(a)
    requested = shape if shape is not None else newshape
    if copy is not None or order not in ("C", "F", "A"):
        raise UnsupportedError("reshape with copy=, or with an unknown order")
    if known_order(array, order) == "F":
        backwards = tuple(reversed(requested)) if isinstance(requested, tuple | list) else requested
        return transpose(reshape(transpose(array), backwards))
    if any(
        isinstance(wanted_extent, bool | np.bool)
        for wanted_extent in (requested if isinstance(requested, tuple | list) else (requested,))
    ):
        raise UnsupportedError("reshape to bools")  # which NumPy refuses
    wanted = extents_of(requested)
    if any(not symbolic_dims.same(wanted_extent, -1) and bool(wanted_extent < 0) for wanted_extent in wanted):
        raise UnsupportedError("reshape to negative extents")
    node = builder.reshape(array.node, wanted)
    if symbolic_dims.same_shape(node.shape, array.extents) or node.operation == "view":
        return Traced(array.tracer, array.view.reshaped(node.shape))
    if array.is_scalar:
        return fresh(array.tracer, node)
    if array.view.is_c():
        return Traced(array.tracer, array.view.reshaped(node.shape))
    if _is_copied(array, node.shape):
        return fresh(array.tracer, node)
    result = fresh(array.tracer, node, is_c=None)
    array.view.storage.note_may_alias(result.view.storage)
    return result


def _is_copied(array: Traced, shape: Sequence[Number]) -> bool:
    """Whether NumPy surely copies an array to reshape it, as no strides describe the result; guards what it compares.

    This is how NumPy decides (`_attempt_nocopy_reshape`): dimensions of both shapes of the same product belong
    together, and those of the array must be one run of memory each. Extents of 1 do not count.
    """
    strides = array.view.strides()
    if strides is None or any(map(symbolic_dims.is_loop_variant, (*array.extents, *shape, *strides))):
        return False
    old = [(extent, stride) for extent, stride in zip(array.extents, strides, strict=True) if not extent == 1]  # noqa: SIM201
    new = [extent for extent in shape if not extent == 1]  # noqa: SIM201
    if any(extent == 0 for extent, _ in old):
        return False
    while old and new:
        (have, _), wanted, count = old[0], new.pop(0), 1
        while have != wanted:
            if have < wanted:
                have, count = have * old[count][0], count + 1
            else:
                wanted = wanted * new.pop(0)
        run, old = old[:count], old[count:]
        if any(outer != extent * inner for (_, outer), (extent, inner) in pairwise(run)):
            return True
    return False


@overrides(methods="reshape")
def reshape_method(a: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(a, wanted, order, copy=copy)


@serves("raveled")
@overrides(np.ravel, methods="ravel")
def ravel(a: Any, order: str = "C") -> Any:
    array = of_array(a)
    is_c = array.view.is_c()
    order = "C" if order == "K" and is_c else known_order(array, order)
    if order == "F":
        return ravel(transpose(array)) if array.ndim > 1 else ravel(array)
    if order != "C":
        raise UnsupportedError("ravel in the order of memory")
    node = builder.reshape(array.node, (-1,))
    if is_c and not array.is_scalar:
        return Traced(array.tracer, array.view.reshaped(node.shape))
    result = fresh(array.tracer, node)
    if is_c is None:
        array.view.storage.note_may_alias(result.view.storage)
    return result


@overrides(methods="flatten")
def flatten(a: Any, order: str = "C") -> Any:
    order = "C" if order == "K" and a.view.is_c() else known_order(a, order)
    if order == "K":
        raise UnsupportedError("flatten in the order of memory")
    array = transpose(a) if order == "F" else a
    return fresh(a.tracer, builder.reshape(array.node, (-1,)))


@overrides(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    array = of_array(a)
    order = tuple(reversed(range(array.ndim))) if axes is None else axes_of(tuple(axes), array.ndim)
    if sorted(order) != list(range(array.ndim)):
        raise ValueError("axes don't match array")
    if array.is_scalar:
        return array
    index_map = tuple((0, ((order.index(i), 1),)) for i in range(array.ndim))
    return array.region(index_map, [array.extents[i] for i in order])


@overrides(methods="transpose")
def transpose_method(a: Any, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return transpose(a)
    return transpose(a, axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes)


overrides(np.matrix_transpose)(lambda x: of_array(x).mT)


@overrides(np.swapaxes, methods="swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    array = of_array(a)
    first, second = (axes_of((axis,), array.ndim)[0] for axis in (axis1, axis2))
    order = list(range(array.ndim))
    order[first], order[second] = order[second], order[first]
    return transpose(array, order)


@overrides(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    array = of_array(a)
    sources, targets = axes_of(source, array.ndim), axes_of(destination, array.ndim)
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [i for i in range(array.ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return transpose(array, order)


@overrides(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    array = of_array(a)
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    total = array.ndim + len(axes)
    new = axes_of(axes, total)
    if len(set(new)) != len(new):
        raise ValueError("repeated axis")
    old = [i for i in range(total) if i not in new]
    shape: list[Number] = [1] * total
    for i, extent in zip(old, array.extents, strict=True):
        shape[i] = extent
    if array.is_scalar:
        return fresh(array.tracer, builder.expand_dims(array.node, new))
    return array.region(tuple((0, ((i, 1),)) for i in old), shape)


@overrides(np.squeeze, methods="squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    array = of_array(a)
    if array.is_scalar:
        return array
    if axis is None:
        removed = {i for i, extent in enumerate(array.extents) if extent == 1}
    else:
        removed = set(axes_of(axis, array.ndim))
        if any(array.extents[i] != 1 for i in removed):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not removed:
        return array
    remaining = [i for i in range(array.ndim) if i not in removed]
    index_map = tuple((0, () if i in removed else ((remaining.index(i), 1),)) for i in range(array.ndim))
    return array.region(index_map, [array.extents[i] for i in remaining])


@overrides(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    operand_array = of_array(array)
    wanted = extents_of(shape)
    if any(not symbolic_dims.is_loop_variant(extent) and extent < 0 for extent in wanted):
        raise ValueError("all elements of broadcast shape must be non-negative")
    builder.broadcast_to(operand_array.node, wanted)
    missing = len(wanted) - operand_array.ndim
    index_map = tuple(
        (0, ())
        if symbolic_dims.same(extent, 1) and not symbolic_dims.same(wanted[missing + i], 1)
        else (0, ((missing + i, 1),))
        for i, extent in enumerate(operand_array.extents)
    )
    return operand_array.region(index_map, wanted, is_readonly=True)


@overrides(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    listed = [of_array(array) for array in arrays]
    shape = builder.broadcast_shapes([array.extents for array in listed])
    return tuple(
        array if symbolic_dims.same_shape(array.extents, shape) else broadcast_to(array, shape) for array in listed
    )


@overrides(np.broadcast_shapes)
def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    tracer = current()
    assert tracer is not None, "called in a trace"
    return tuple(as_symint(tracer, extent) for extent in builder.broadcast_shapes([*map(extents_of, shapes)]))


@overrides(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    array = of_array(m)
    over = axes_of(axis, array.ndim)
    index_map = tuple(
        (extent - 1, ((i, -1),)) if i in over else (0, ((i, 1),)) for i, extent in enumerate(array.extents)
    )
    if any(symbolic_dims.same(extent, 0) for extent in array.extents):
        raise UnsupportedError("flip of an empty array")
    return array.region(index_map, array.extents)


overrides(np.fliplr)(lambda m: of_array(m)[:, ::-1])
overrides(np.flipud)(lambda m: of_array(m)[::-1, ...])


@overrides(np.diagonal, methods="diagonal")
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    array = of_array(a)
    first, second = (axes_of((axis,), array.ndim)[0] for axis in (axis1, axis2))
    shift = as_extent(offset)
    if array.ndim < 2 or first == second:
        raise ValueError("diag requires an array of at least two dimensions")
    rows, columns = array.extents[first], array.extents[second]
    down, right = (0, shift) if shift >= 0 else (-shift, 0)
    count = _nonnegative_min(rows - down, columns - right)
    remaining = [i for i in range(array.ndim) if i not in (first, second)]
    index_map: list[Any] = [None] * array.ndim
    for new, i in enumerate(remaining):
        index_map[i] = (0, ((new, 1),))
    if symbolic_dims.same(count, 0):
        down = right = 0
    index_map[first], index_map[second] = (down, ((len(remaining), 1),)), (right, ((len(remaining), 1),))
    return array.region(tuple(index_map), [*(array.extents[i] for i in remaining), count], is_readonly=True)


@overrides(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    array = of_array(a)
    if array.ndim != 2 or wrap or array.extents[0] > array.extents[1]:
        raise UnsupportedError("fill_diagonal of other than wide matrices")
    count = array.extents[0]
    target = array.region(((0, ((0, 1),)), (0, ((0, 1),))), (count,))
    target[...] = val


@overrides(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    array = of_array(x)
    window = extents_of(window_shape)
    axes = axes_of(tuple(range(array.ndim)) if axis is None else axis, array.ndim)
    if len(window) != len(axes):
        raise UnsupportedError("sliding_window_view with other axes than windows")  # which NumPy refuses
    shape, index_map = list(array.extents), builder.identity_map(array.ndim)
    for i, (own, extent) in enumerate(zip(axes, window, strict=True)):
        if extent < 0 or extent > shape[own]:
            raise UnsupportedError("sliding_window_view with windows that do not fit")
        shape[own] = shape[own] - (extent - 1)
        start, steps = index_map[own]
        index_map[own] = (start, (*steps, (array.ndim + i, 1)))
    return array.region(tuple(index_map), [*shape, *window], is_readonly=not writeable)


def _nonnegative_min(left: Number, right: Number) -> Number:
    """``max(min(left, right), 0)`` of two extents; the comparison becomes a guard."""
    smaller = left if left <= right else right
    return smaller if smaller > 0 else 0


overrides(methods="copy")(lambda a, order="C": a if a.is_scalar else copied(a, order))
overrides(np.copy)(lambda a, order="K", **_: copied(of_array(a), order))


@overrides(methods="astype")
def astype(a: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: Any = True) -> Any:
    name = dtype_name(dtype)
    if not np.can_cast(a.dtype, name, casting):
        raise TypeError(
            f"Cannot cast array data from {a.dtype!r} to {np.dtype(name)!r} according to the rule {casting!r}"
        )
    if not copy and a.dtype == name:
        if order not in ("K", "A") and not (order == "C" and a.view.is_c()):
            raise UnsupportedError("astype with copy=False and order=")
        return a
    if a.dtype.name in PLANES and name not in (*PLANES, "bool") and a.ndim and hasattr(np, "astype"):
        # NumPy warns that the imaginary part is lost.
        return call_with_shape_of(a.tracer, functools.partial(np.astype, dtype=name), "astype", name, a, a)
    return result(a.tracer, builder.cast(a.node, name), a) if a.is_scalar else copied(a, order, name)


@overrides(methods="view")
def view(a: Any, dtype: Any = None) -> Any:
    if is_given(dtype) and np.dtype(dtype) != a.dtype:
        raise UnsupportedError("a view in another dtype")
    return a.region(tuple(builder.identity_map(a.ndim)), a.extents)


@overrides(methods="fill")
def fill(a: Any, value: Any) -> None:
    a[...] = value


def _at_least(*new_axes: tuple[int, ...]) -> Any:
    """``atleast_1d`` and the like: for arrays of 0, 1, ... dimensions the dimensions of one element that are added."""

    def spread(array: Traced) -> Any:
        if array.ndim >= len(new_axes):
            return array
        return expand_dims(array, new_axes[array.ndim]) if array.ndim else reshape(array, (1,) * len(new_axes))

    def convert(*arrays: Any) -> Any:
        results = [spread(of_array(array)) for array in arrays]
        return results[0] if len(results) == 1 else tuple(results)

    return convert


atleast_1d = overrides(np.atleast_1d)(_at_least((0,)))
atleast_2d = overrides(np.atleast_2d)(_at_least((0, 1), (0,)))
atleast_3d = overrides(np.atleast_3d)(_at_least((0, 1, 2), (0, 2), (2,)))
