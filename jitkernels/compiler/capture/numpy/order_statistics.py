"""`numpy.median` of short axes by a sorting network, and of whole rows by the kernel that sorts."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.numpy.reductions import axes_of
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.override_registry import overrides
from jitkernels.compiler.ir.builder import UnsupportedError

LONGEST_NETWORK = 25
"""Elements of an axis that a network of minima and maxima sorts; beyond, the kernel takes less code and time."""


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
    middle = _by_network(rows, len(others), count) if is_short else _by_sorting(rows, len(others))
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


def _by_sorting(rows: Any, outer: int) -> Any:
    """The median of the rows behind the first dimensions, from sorted rows: NaN come last."""
    ordered = np.sort(np.reshape(rows, (*rows.shape[:outer], -1)), axis=-1)
    size = ordered.shape[-1]
    low, high, last = ordered[..., (size - 1) // 2], ordered[..., size // 2], ordered[..., -1]
    middle = np.where(low == high, low, (low + high) / rows.dtype.type(2))
    return np.where(np.isnan(last), last, middle)[()]
