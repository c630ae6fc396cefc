"""`numpy.unique` of a vector: the elements of the sorted vector that differ from the one before, and where they are."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.control_flow.iterables import element_loop
from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.dynamic.compress import compressed
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.shape_ops import of_array, ravel
from jitkernels.compiler.capture.override_registry import SERVICES, TABLE, overrides
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError


@overrides(np.unique)
def unique(
    ar: Any,
    return_index: Any = False,
    return_inverse: Any = False,
    return_counts: Any = False,
    axis: Any = None,
    *,
    equal_nan: Any = True,
    sorted: Any = True,  # noqa: A002  # NumPy's name
) -> Any:
    """The distinct elements in order.

    On request also the index of the first of each, the number of each element among them, and how many there are.
    """
    flags = return_index, return_inverse, return_counts, equal_nan, sorted
    array = of_array(ar)
    if axis is not None or not all(type(flag) is bool for flag in flags) or array.dtype.kind == "c":
        raise UnsupportedError("numpy.unique along an axis, of complex numbers, or with options that are no constants")
    if not sorted and not (return_index or return_inverse or return_counts):
        raise UnsupportedError("numpy.unique in the order of NumPy's hash table (sorted=False)")
    flat = array if array.ndim == 1 else ravel(array)
    order = TABLE[np.argsort](flat, kind="stable") if return_index or return_inverse else None
    ordered = TABLE[np.sort](flat) if order is None else flat[order]
    is_first = _differing(ordered, equal_nan=equal_nan)
    results: list[Any] = [compressed(ordered, is_first)]
    if return_index:
        results.append(compressed(order, is_first))
    if return_inverse:
        numbers = _zeros(flat, "int64")
        numbers[order] = TABLE[np.cumsum](is_first.astype(np.int64)) - 1
        results.append(numbers if array.ndim == 1 else numbers.reshape(array.shape))
    if return_counts:
        results.append(_counts(is_first, results[0]))
    return results[0] if len(results) == 1 else tuple(results)


def _zeros(like: Any, dtype: str) -> Any:
    return SERVICES["zeros"](like.tracer, like.shape[0], dtype)


def _differing(ordered: Any, *, equal_nan: bool) -> Any:
    """Which elements differ from the one before. Equal NaN, which are the last ones, are one element."""
    before, after = ordered[:-1], ordered[1:]
    differs = before != after
    if equal_nan and ordered.dtype.kind == "f":
        differs = differs & ~((before != before) & (after != after))
    result = _zeros(ordered, "bool")
    result[:1] = True
    result[1:] = differs
    return result


def _counts(is_first: Any, values: DynamicSlice) -> DynamicSlice:
    """How many elements there are of each value."""
    tracer, counts, number = is_first.tracer, _zeros(is_first, "int64"), Variable("_jk_number", -1)

    def body(index: Any) -> None:
        step = builder.cast(is_first[index].node, "int64")
        intervals.note(tracer, step, (0, 1))
        number.set(number.value + as_number(tracer, step, int))
        node = as_int(tracer, number.value)  # the first element begins the first value
        intervals.note(tracer, node, (0, is_first.extents[0] - 1))
        position = as_number(tracer, node, int)
        counts[position] = counts[position] + 1

    SERVICES["for"](element_loop(is_first.shape[0]), None, body, number)
    return DynamicSlice(counts, 0, values.stop, owns=True)
