"""Sorts and order statistics: `numpy.sort`, `argsort` and `lexsort` by the kernels SORT and ARGSORT.

`numpy.median` of short axes is a sorting network, that of others the kernel ORDER_STATISTICS; quantiles likewise.
Sorted rows end with their NaN. So the statistics that leave out NaN take the first elements of these rows, whose number
differs: several rows are sorted for them.
"""

import functools
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh, traced
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.numpy_callouts import call_with_shape_of
from jitkernels.compiler.capture.numpy.reductions import axes_of, is_given, tracer_of
from jitkernels.compiler.capture.numpy.shape_ops import copied, of_array, ravel, transpose
from jitkernels.compiler.capture.override_registry import METHODS, SERVICES, overrides
from jitkernels.compiler.ir import symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.memory_order import order_like
from jitkernels.dispatch.lazy_operator import lazy_operator

LONGEST_NETWORK = 25
"""Elements of an axis that a network of minima and maxima sorts; beyond, the kernel takes less code and time."""

MAX_SELECTED_QUANTILES = 16
"""Most quantiles that are selected; for more of them the rows are sorted."""

AVERAGED = ("float64", "int64", "int32")
"""Dtypes of which NumPy computes quantiles in double precision."""

KINDS = (None, "quicksort", "heapsort", "mergesort", "stable")
STABLE = ("mergesort", "stable")
"""Kinds of sorts, and those of them that keep the order of equal elements."""


def _array_and_axis(a: Any, axis: Any, order: Any, name: str) -> tuple[Traced, int]:
    """The array that a sort orders, and its axis."""
    array = of_array(a)
    if order is not None:
        raise UnsupportedError(f"{name} with order=")
    if axis is None:
        array, axis = ravel(array), -1
    return array, axes_of((axis,), array.ndim)[0]


def _by_kernel(name: str, array: Traced, axis: int) -> Any:
    """An array with the kernel of that name applied along an axis."""
    moved = SERVICES["function"]
    rows = moved(array.tracer, np.moveaxis, (array, axis, -1), {})
    result: Traced = lazy_operator(name)(rows)
    return moved(array.tracer, np.moveaxis, (result, -1, axis), {})


def _laid_out(result: Traced, like: Traced | None) -> Traced:
    """A sorted array in the memory order of the one that NumPy copies and sorts; without one, as for indices, C order.

    What `reshape` makes of it is a view or a copy depending on that.
    """
    if result.ndim < 2:
        return result
    strides, wanted = result.view.strides(), None if like is None else like.view.strides()
    if like is not None and wanted is None:
        return result
    order = None if wanted is None else order_like(result.extents, wanted)
    if strides is not None and order_like(result.extents, strides) == order:
        return result
    if order is None:
        return copied(result, "C")
    in_memory = copied(transpose(result, order), "C")
    return transpose(in_memory, tuple(map(order.index, range(result.ndim))))  # type: ignore[no-any-return]


@overrides(np.sort)
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """By the kernel SORT, which orders zeros by their signs, so that stable sorts of floats need the indices."""
    array, along = _array_and_axis(a, axis, order, "sort")
    if kind in KINDS and array.dtype.kind in "fiub":
        if array.dtype.kind == "f" and (kind in STABLE or stable):
            ordered: Any = np.take_along_axis(array, argsort(array, along), along)
            return _laid_out(ordered, array)
        result = _by_kernel("sort", array, along)
        return _laid_out(result if result.dtype == array.dtype else result.astype(array.dtype), array)
    call = functools.partial(np.sort, axis=along, kind=kind, stable=stable)
    return call_with_shape_of(array.tracer, call, "sort", array.dtype.name, array, array)


@overrides(np.argsort, methods="argsort")
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """By the kernel ARGSORT, which is stable, as `numpy.argsort` may be where it need not."""
    array, along = _array_and_axis(a, axis, order, "argsort")
    if kind in KINDS and array.dtype.kind in "fiub" and not array.tracer.differentiates:
        return _laid_out(_by_kernel("argsort", array, along), None)
    call = functools.partial(np.argsort, axis=along, kind=kind, stable=stable)
    return call_with_shape_of(array.tracer, call, "argsort", "int64", array, array)


@overrides(np.lexsort)
def lexsort(keys: Any, axis: Any = -1) -> Any:
    """Indices sorted by each key in turn, the last one last: each sort keeps the order of equal elements."""
    rows: Sequence[Any] = keys if isinstance(keys, list | tuple) else [*of_array(keys)]
    arrays = [of_array(key) for key in rows]
    if not arrays or any(key.ndim != 1 or key.dtype.kind not in "fiub" for key in arrays):
        raise UnsupportedError("lexsort of keys of several dimensions, or of complex numbers")
    if axis not in (0, -1) or arrays[0].tracer.differentiates:
        raise UnsupportedError("lexsort along another axis, or differentiated")
    if any(key.extents != arrays[0].extents for key in arrays):
        raise ValueError("all keys need to be the same shape")
    order = argsort(arrays[0], kind="stable")
    for key in arrays[1:]:
        order = order[argsort(key[order], kind="stable")]
    return order


@overrides(methods="sort")
def sort_method(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> None:
    a.view.write(SERVICES["function"](a.tracer, np.sort, (a, axis, kind, order), {"stable": stable}).node)


@overrides(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The mean of the middle elements, or NaN where there is one among the elements."""
    array = of_array(a)
    if out is not None or overwrite_input or array.dtype.name not in ("float32", "float64") or not array.ndim:
        raise UnsupportedError("numpy.median with these options")
    axes = axes_of(axis, array.ndim)
    others = [i for i in range(array.ndim) if i not in axes]
    rows = np.transpose(array, (*others, *axes))
    counts = [array.extents[i] for i in axes]
    count = 1
    for extent in counts:
        count = count * extent
    if not count > 0:
        raise UnsupportedError("numpy.median of no elements")
    is_short = type(count) is int and count <= LONGEST_NETWORK
    middle = _by_network(rows, len(others), count) if is_short else _by_selection(rows, len(others))
    if keepdims:
        middle = np.reshape(middle, tuple(1 if i in axes else size for i, size in enumerate(array.shape)))
    return middle


def _by_network(rows: Any, outer: int, count: int) -> Any:
    """The median of all elements behind the first dimensions: each exchange orders two of them."""
    leading = (slice(None),) * outer
    shape = [int(extent) for extent in rows.extents[outer:]]
    elements = [rows[(*leading, *(int(i) for i in np.unravel_index(number, shape)))] for number in range(count)]
    has_nan = np.isnan(elements[0])
    for element in elements[1:]:
        has_nan = has_nan | np.isnan(element)
    for first, second in exchanges(count):
        low, high = elements[first], elements[second]
        elements[first], elements[second] = np.minimum(low, high), np.maximum(low, high)
    middle = elements[count // 2]
    if count % 2 == 0:
        middle = (elements[count // 2 - 1] + middle) / rows.dtype.type(2)
    return np.where(has_nan, rows.dtype.type(np.nan), middle)[()]


def exchanges(count: int) -> list[tuple[int, int]]:
    """The pairs of Batcher's odd-even merge sort, in order, for any number of elements."""
    pairs = []
    size = 1
    while size < count:
        step = size
        while step >= 1:
            for start in range(step % size, count - step, 2 * step):
                for i in range(min(step, count - start - step)):
                    first, second = start + i, start + i + step
                    if first // (2 * size) == second // (2 * size):
                        pairs.append((first, second))
            step //= 2
        size *= 2
    return pairs


def _by_selection(rows: Any, outer: int) -> Any:
    """The median of the rows behind the first dimensions."""
    rows = np.reshape(rows, (*rows.shape[:outer], -1))
    size = rows.shape[-1]
    low, high = _selected(rows, [(size - 1) // 2, size // 2])
    middle = np.where(low == high, low, (low + high) / rows.dtype.type(2))
    return np.where(_has_nan(rows), rows.dtype.type(np.nan), middle)[()]


def _has_nan(rows: Any) -> Any:
    return np.any(np.isnan(rows), axis=-1)


def _selected(rows: Any, places: list[Any]) -> list[Any]:
    """The elements at places of the sorted rows, each of all rows, by the kernel ORDER_STATISTICS."""
    if all(type(place) is int for place in places):
        indices: Any = traced(rows.tracer, np.array(places, np.int64))
    else:
        indices = np.stack([fresh(rows.tracer, as_int(rows.tracer, place)) for place in places])
    found = lazy_operator("order_statistics")(rows, indices)
    return [found[..., i] for i in range(len(places))]


def _float_rows(a: Any, axis: Any, name: str, out: Any, overwrite_input: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """An array, its elements with the reduced axes last and as one, and these axes."""
    array = of_array(a)
    if is_given(out) or overwrite_input is not False or array.dtype.name not in AVERAGED or not array.ndim:
        raise UnsupportedError(f"numpy.{name} with these options")
    array = METHODS["astype"](array, np.float64, copy=False)
    axes = axes_of(axis, array.ndim)
    others = [i for i in range(array.ndim) if i not in axes]
    count = symbolic_dims.product(array.extents[i] for i in axes)
    if not count > 0:
        raise UnsupportedError(f"numpy.{name} of no elements")
    rows = np.reshape(np.transpose(array, (*others, *axes)), (*(array.shape[i] for i in others), -1))
    return array, rows, axes


def _at(ordered: Any, positions: Any) -> Any:
    """An element of each sorted row; `positions`: of one for all rows, or of one for each."""
    if ordered.ndim == 1:
        return ordered[positions]
    return np.take_along_axis(ordered, np.broadcast_to(positions, ordered.shape[:-1])[..., None], axis=-1)[..., 0]


def between(ordered: Any, counts: Any, fraction: Any) -> Any:
    """The quantile of the first elements of sorted rows by linear interpolation, in NumPy's order of operations."""
    place, below, above = _places(counts, fraction)
    return _interpolated(_at(ordered, below), _at(ordered, above), place - below)


def _places(counts: Any, fraction: Any) -> tuple[Any, Any, Any]:
    """Where a quantile lies, and the indices of the elements on both sides."""
    place = (counts - 1) * fraction
    below = METHODS["astype"](of_array(np.floor(place)), np.int64)[()]
    return place, below, np.minimum(below + 1, counts - 1)


def _interpolated(low: Any, high: Any, weight: Any) -> Any:
    difference = high - low
    return np.where(weight >= 0.5, high - difference * (1 - weight), low + difference * weight)


def _between_selected(rows: Any, counts: Any, fractions: list[Any]) -> list[Any]:
    """As `between`, for some quantiles of rows that are not sorted."""
    places = [_places(counts, fraction) for fraction in fractions]
    found = _selected(rows, [index for _, *both in places for index in both])
    return [
        _interpolated(low, high, place - below)
        for (place, below, _), low, high in zip(places, found[::2], found[1::2], strict=True)
    ]


def fractions_of(
    q: Any, divisor: float, name: str, *, accepts_vector: bool = False
) -> tuple[list[Any], tuple[int, ...]]:
    """The quantiles to compute, each checked, and the leading shape of the result; a traced vector is one of them."""
    if type(q) is Traced and (not q.ndim or (accepts_vector and q.ndim == 1)):
        fraction: Any = np.divide(of_array(q), divisor)
        is_inside: Any = np.all((fraction >= 0) & (fraction <= 1))
        tracer_of().checks.append(elementwise("logical_not", is_inside.node))  # NumPy raises ValueError
        return [fraction], ()
    if type(q) is Traced or not isinstance(q, numbers.Real | list | tuple | np.ndarray):
        raise UnsupportedError(f"numpy.{name} of an array of quantiles")
    given = np.asarray(q, np.float64) / divisor
    if given.ndim > 1 or not ((given >= 0) & (given <= 1)).all():
        raise UnsupportedError(f"numpy.{name} of these quantiles")
    return given.ravel().tolist(), given.shape


def _quantiles(name: str, divisor: float, leaves_out: bool) -> Any:
    def compute(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: Any = "linear",
        keepdims: Any = False, *, weights: Any = None, interpolation: Any = None,
    ) -> Any:  # fmt: skip
        if method != "linear" or is_given(weights) or is_given(interpolation):
            raise UnsupportedError(f"numpy.{name} with these options")
        array, rows, axes = _float_rows(a, axis, name, out, overwrite_input)
        fractions, shape = fractions_of(q, divisor, name, accepts_vector=rows.ndim == 1 and not is_given(keepdims))
        counts = np.sum(~np.isnan(rows), axis=-1) if leaves_out else rows.shape[-1]
        present = np.maximum(counts, 1)
        if _are_selected(rows, fractions, leaves_out):
            results = _between_selected(rows, present, fractions)
        else:
            ordered = np.sort(rows, axis=-1)
            results = [between(ordered, present, fraction) for fraction in fractions]
        results = [_marked(result, counts, rows, leaves_out) for result in results]
        if keepdims is not False and is_given(keepdims):
            kept = tuple(1 if i in axes else size for i, size in enumerate(array.shape))
            results = [np.reshape(result, kept) for result in results]
        return np.stack(results) if shape else results[0][()]

    return compute


def _are_selected(rows: Any, fractions: list[Any], leaves_out: bool) -> bool:
    """Whether a few indices say what is wanted of all rows."""
    is_vector = any(type(fraction) is Traced and fraction.ndim for fraction in fractions)
    return not is_vector and len(fractions) <= MAX_SELECTED_QUANTILES and (rows.ndim == 1 or not leaves_out)


def _marked(result: Any, counts: Any, rows: Any, leaves_out: bool) -> Any:
    """NaN where a row has one, or where nothing is left of it, of which NumPy warns: zero divided by zero."""
    if leaves_out:
        return np.where(counts > 0, result, 0.0 / counts)
    return np.where(_has_nan(rows), np.nan, result)


overrides(np.quantile)(_quantiles("quantile", 1.0, False))
overrides(np.percentile)(_quantiles("percentile", 100.0, False))
overrides(np.nanquantile)(_quantiles("nanquantile", 1.0, True))
overrides(np.nanpercentile)(_quantiles("nanpercentile", 100.0, True))


@overrides(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = np._NoValue
) -> Any:
    array, rows, axes = _float_rows(a, axis, "nanmedian", out, overwrite_input)
    counts = np.sum(~np.isnan(rows), axis=-1)
    present = np.maximum(counts, 1)
    places = [(present - 1) // 2, present // 2]
    if rows.ndim == 1:
        low, high = _selected(rows, places)
    else:
        ordered = np.sort(rows, axis=-1)
        low, high = (_at(ordered, place) for place in places)
    middle = np.where(counts > 0, np.where(low == high, low, (low + high) / 2.0), 0.0 / counts)
    if is_given(keepdims) and keepdims:
        middle = np.reshape(middle, tuple(1 if i in axes else size for i, size in enumerate(array.shape)))
    return middle[()]
