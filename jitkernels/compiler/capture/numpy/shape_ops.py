"""Functions that give the elements of traced arrays another shape or order."""

from typing import Any

import numpy as np

from jitkernels.frontends.reductions import axes_of, dtype_name, is_given, tracer_of
from jitkernels.frontends.tables import implements, serves
from jitkernels.frontends.traced import Traced, fresh, result, traced
from jitkernels.frontends.whole import as_extent
from jitkernels.graph import construct, extents
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Number


def extents_of(shape: Any) -> tuple[Number, ...]:
    """A shape argument."""
    if isinstance(shape, tuple | list):
        return tuple(as_extent(one) for one in shape)
    return (as_extent(shape),)


def of_array(a: Any) -> Traced:
    return traced(tracer_of(), a)


def copied(given: Traced, order: Any = "K", dtype: str | None = None) -> Traced:
    """A new array of the same elements, or of what they are in another dtype."""
    order = known_order(given, order)
    if order == "F":
        return transpose(copied(transpose(given), "C", dtype))  # type: ignore[no-any-return]
    node = given.node if dtype is None else construct.cast(given.node, dtype)
    if node is given.node:
        node = construct.copy(node)  # loops and branches tell arrays by their nodes
    made = fresh(given.tracer, node)
    if order != "C" and node.ndim > 1:
        made.view.storage.lie_like(given.view.strides())
    return made


def known_order(given: Traced, order: Any) -> str:
    """One of NumPy's letters for how elements are to lie or to be taken: C, F or K; for A what that is here."""
    if order is None or order in ("C", "F", "K"):
        return order or "K"
    is_c, in_columns = given.view.is_c(), transpose(given).view.is_c()
    if order != "A" or (is_c is None and in_columns is not False):
        raise UnknownError(f"an array in order {order!r}")
    return "F" if in_columns and not is_c else "C"


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    given = of_array(a)
    asked = shape if shape is not None else newshape
    if copy is not None or order not in ("C", "F", "A"):
        raise UnknownError("reshape with copy=, or in an order that there is not")
    if known_order(given, order) == "F":
        backwards = tuple(reversed(asked)) if isinstance(asked, tuple | list) else asked
        return transpose(reshape(transpose(given), backwards))
    if any(
        isinstance(one, bool | np.bool) for one in (asked if isinstance(asked, tuple | list) else (asked,))
    ):
        raise UnknownError("reshape to bools")  # which NumPy refuses
    wanted = extents_of(asked)
    if any(not extents.same(one, -1) and bool(one < 0) for one in wanted):
        raise UnknownError("reshape to negative extents")
    node = construct.reshape(given.node, wanted)
    if extents.same_shape(node.shape, given.extents) or node.operation == "view":
        return Traced(given.tracer, given.view.reshaped(node.shape))
    if given.is_scalar:
        return fresh(given.tracer, node)
    if given.view.is_c():
        return Traced(given.tracer, given.view.reshaped(node.shape))
    made = fresh(given.tracer, node, is_c=None)
    given.view.storage.doubt(made.view.storage)
    return made


@implements(methods="reshape")
def reshape_method(a: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    wanted = shape[0] if len(shape) == 1 else shape
    return reshape(a, wanted, order, copy=copy)


@serves("raveled")
@implements(np.ravel, methods="ravel")
def ravel(a: Any, order: str = "C") -> Any:
    given = of_array(a)
    is_c = given.view.is_c()
    order = "C" if order == "K" and is_c else known_order(given, order)
    if order == "F":
        return ravel(transpose(given)) if given.ndim > 1 else ravel(given)
    if order != "C":
        raise UnknownError("ravel in the order of memory")
    node = construct.reshape(given.node, (-1,))
    if is_c and not given.is_scalar:
        return Traced(given.tracer, given.view.reshaped(node.shape))
    made = fresh(given.tracer, node)
    if is_c is None:
        given.view.storage.doubt(made.view.storage)
    return made


@implements(methods="flatten")
def flatten(a: Any, order: str = "C") -> Any:
    order = "C" if order == "K" and a.view.is_c() else known_order(a, order)
    if order == "K":
        raise UnknownError("flatten in the order of memory")
    given = transpose(a) if order == "F" else a
    return fresh(a.tracer, construct.reshape(given.node, (-1,)))


@implements(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> Any:
    given = of_array(a)
    order = tuple(reversed(range(given.ndim))) if axes is None else axes_of(tuple(axes), given.ndim)
    if sorted(order) != list(range(given.ndim)):
        raise ValueError("axes don't match array")
    if given.is_scalar:
        return given
    index_map = tuple((0, ((order.index(i), 1),)) for i in range(given.ndim))
    return given.region(index_map, [given.extents[i] for i in order])


@implements(methods="transpose")
def transpose_method(a: Any, *axes: Any) -> Any:
    if not axes or axes == (None,):
        return transpose(a)
    return transpose(a, axes[0] if len(axes) == 1 and isinstance(axes[0], tuple | list) else axes)


@implements(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    return of_array(x).mT


@implements(np.swapaxes, methods="swapaxes")
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    given = of_array(a)
    one, other = (axes_of(axis, given.ndim)[0] for axis in (axis1, axis2))
    order = list(range(given.ndim))
    order[one], order[other] = order[other], order[one]
    return transpose(given, order)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    given = of_array(a)
    sources, targets = axes_of(source, given.ndim), axes_of(destination, given.ndim)
    if len(sources) != len(targets) or len(set(sources)) != len(sources) or len(set(targets)) != len(targets):
        raise ValueError("`source` and `destination` arguments must have the same number of elements")
    order = [i for i in range(given.ndim) if i not in sources]
    for target, one in sorted(zip(targets, sources, strict=True)):
        order.insert(target, one)
    return transpose(given, order)


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Any:
    given = of_array(a)
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    total = given.ndim + len(axes)
    new = axes_of(axes, total)
    if len(set(new)) != len(new):
        raise ValueError("repeated axis")
    kept = [i for i in range(total) if i not in new]
    shape: list[Number] = [1] * total
    for i, one in zip(kept, given.extents, strict=True):
        shape[i] = one
    if given.is_scalar:
        return fresh(given.tracer, construct.expand_dims(given.node, new))
    return given.region(tuple((0, ((i, 1),)) for i in kept), shape)


@implements(np.squeeze, methods="squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    given = of_array(a)
    if given.is_scalar:
        return given
    if axis is None:
        gone = {i for i, one in enumerate(given.extents) if extents.same(one, 1) or bool(one == 1)}
    else:
        gone = set(axes_of(axis, given.ndim))
        if any(given.extents[i] != 1 for i in gone):
            raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    if not gone:
        return given
    kept = [i for i in range(given.ndim) if i not in gone]
    index_map = tuple((0, () if i in gone else ((kept.index(i), 1),)) for i in range(given.ndim))
    return given.region(index_map, [given.extents[i] for i in kept])


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    given = of_array(array)
    wanted = extents_of(shape)
    construct.broadcast_to(given.node, wanted)
    missing = len(wanted) - given.ndim
    index_map = tuple(
        (0, ())
        if extents.same(one, 1) and not extents.same(wanted[missing + i], 1)
        else (0, ((missing + i, 1),))
        for i, one in enumerate(given.extents)
    )
    return given.region(index_map, wanted, is_readonly=True)


@implements(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any, subok: bool = False) -> Any:
    listed = [of_array(one) for one in arrays]
    shape = construct.broadcast_shapes([one.extents for one in listed])
    return tuple(
        one if extents.same_shape(one.extents, shape) else broadcast_to(one, shape) for one in listed
    )


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Any:
    given = of_array(m)
    over = axes_of(axis, given.ndim)
    index_map = tuple(
        (one - 1, ((i, -1),)) if i in over else (0, ((i, 1),)) for i, one in enumerate(given.extents)
    )
    if any(extents.same(one, 0) for one in given.extents):
        raise UnknownError("flip of nothing")
    return given.region(index_map, given.extents)


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    return of_array(m)[:, ::-1]


@implements(np.flipud)
def flipud(m: Any) -> Any:
    return of_array(m)[::-1, ...]


@implements(np.diagonal, methods="diagonal")
def diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    given = of_array(a)
    one, other = (axes_of(axis, given.ndim)[0] for axis in (axis1, axis2))
    shift = as_extent(offset)
    if given.ndim < 2 or one == other:
        raise ValueError("diag requires an array of at least two dimensions")
    rows, columns = given.extents[one], given.extents[other]
    down, right = (0, shift) if shift >= 0 else (-shift, 0)
    count = _least(rows - down, columns - right)
    kept = [i for i in range(given.ndim) if i not in (one, other)]
    index_map: list[Any] = [None] * given.ndim
    for new, i in enumerate(kept):
        index_map[i] = (0, ((new, 1),))
    if extents.same(count, 0):
        down = right = 0
    index_map[one], index_map[other] = (down, ((len(kept), 1),)), (right, ((len(kept), 1),))
    return given.region(tuple(index_map), [*(given.extents[i] for i in kept), count], is_readonly=True)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    given = of_array(a)
    if given.ndim != 2 or wrap or given.extents[0] > given.extents[1]:
        raise UnknownError("fill_diagonal of other than wide matrices")
    count = given.extents[0]
    target = given.region(((0, ((0, 1),)), (0, ((0, 1),))), (count,))
    target[...] = val


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    given = of_array(x)
    window = extents_of(window_shape)
    axes = axes_of(tuple(range(given.ndim)) if axis is None else axis, given.ndim)
    if len(window) != len(axes):
        raise UnknownError("sliding_window_view with other axes than windows")  # which NumPy refuses
    shape, index_map = list(given.extents), construct.identity_map(given.ndim)
    for i, (own, extent) in enumerate(zip(axes, window, strict=True)):
        if extent < 0 or extent > shape[own]:
            raise UnknownError("sliding_window_view with windows that do not fit")
        shape[own] = shape[own] - (extent - 1)
        start, steps = index_map[own]
        index_map[own] = (start, (*steps, (given.ndim + i, 1)))
    return given.region(tuple(index_map), [*shape, *window], is_readonly=not writeable)


def _least(one: Number, other: Number) -> Number:
    """The smaller of two extents, or none at all; which one it is becomes part of the code."""
    found = one if one <= other else other
    return found if found > 0 else 0


@implements(methods="copy")
def copy_method(a: Any, order: str = "C") -> Any:
    return copied(a, order) if not a.is_scalar else a


@implements(np.copy)
def copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return copied(of_array(a), order)


@implements(methods="astype")
def astype(
    a: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: Any = True
) -> Any:
    name = dtype_name(dtype)
    if not np.can_cast(a.dtype, name, casting):
        raise TypeError(
            f"Cannot cast array data from {a.dtype!r} to {np.dtype(name)!r} according to the rule {casting!r}"
        )
    if not copy and a.dtype == name:
        if order not in ("K", "A") and not (order == "C" and a.view.is_c()):
            raise UnknownError("astype with copy=False and order=")
        return a
    return result(a.tracer, construct.cast(a.node, name), a) if a.is_scalar else copied(a, order, name)


@implements(methods="view")
def view(a: Any, dtype: Any = None) -> Any:
    if is_given(dtype) and np.dtype(dtype) != a.dtype:
        raise UnknownError("a view in another dtype")
    return a.region(tuple(construct.identity_map(a.ndim)), a.extents)


@implements(methods="fill")
def fill(a: Any, value: Any) -> None:
    a[...] = value


@implements(methods="conj conjugate")
def conjugate(a: Any) -> Any:
    return a  # itself, as it is no complex number


@implements(np.atleast_1d)
def atleast_1d(*arrays: Any) -> Any:
    return _each(arrays, lambda one: reshape(one, (1,)) if one.ndim == 0 else one)


@implements(np.atleast_2d)
def atleast_2d(*arrays: Any) -> Any:
    return _each(
        arrays,
        lambda one: reshape(one, (1, 1)) if one.ndim == 0 else expand_dims(one, 0) if one.ndim == 1 else one,
    )


@implements(np.atleast_3d)
def atleast_3d(*arrays: Any) -> Any:
    def spread(one: Traced) -> Any:
        if one.ndim == 0:
            return reshape(one, (1, 1, 1))
        if one.ndim == 1:
            return expand_dims(one, (0, 2))
        return expand_dims(one, 2) if one.ndim == 2 else one

    return _each(arrays, spread)


def _each(arrays: Any, spread: Any) -> Any:
    found = [spread(of_array(one)) for one in arrays]
    return found[0] if len(found) == 1 else tuple(found)
