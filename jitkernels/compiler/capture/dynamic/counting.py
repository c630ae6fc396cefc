"""Counts of elements: `numpy.bincount`, `histogram`, `count_nonzero`, and the index tuples of `numpy.argwhere`."""

from numbers import Real
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import Variable
from jitkernels.compiler.capture.dynamic.compress import flatnonzero
from jitkernels.compiler.capture.dynamic.dynamic_array import (
    FUNCTIONS,
    DynamicArray,
    KnownElements,
    as_operand,
    require_same_length,
)
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.numpy.shape_ops import of_array, ravel
from jitkernels.compiler.capture.override_registry import SERVICES, overrides
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.unsupported import UnknownSizeError
from jitkernels.dispatch.lazy_operator import lazy_operator


def count_nonzero(array: DynamicArray, axis: Any = None) -> Any:
    """``numpy.count_nonzero`` of an array of computed length."""
    if axis not in (None, 0, -1):
        raise UnknownSizeError("numpy.count_nonzero of an array of computed length, along an axis")
    numbers: Any = array
    return np.sum(numbers if array.dtype == "bool" else np.not_equal(numbers, 0))


@overrides(np.bincount)
def bincount(x: Any, /, weights: Any = None, minlength: Any = 0) -> Any:
    """How often each number occurs, or the sum of its weights.

    Calls with numbers from `minlength` on bail out, as they get a longer result, and those with negative ones, which
    NumPy refuses.
    """
    if type(minlength) not in (int, SymInt) or not minlength > 0:
        raise UnsupportedError("numpy.bincount without minlength=")
    tracer = next(value.tracer for value in (x, weights) if isinstance(value, Traced | DynamicArray))
    numbers = as_operand(tracer, x)
    heavy = None if weights is None else as_operand(tracer, weights)
    if not isinstance(numbers, DynamicArray) or numbers.dtype.kind not in "iu" or numbers.dtype == "uint64":
        raise UnsupportedError("numpy.bincount of other numbers than ints of a vector")
    if heavy is not None and (not isinstance(heavy, DynamicArray) or heavy.dtype.kind not in "fiub"):
        raise UnsupportedError("numpy.bincount with weights that are no vector of numbers")
    counts: Any = SERVICES["zeros"](tracer, minlength, "int64" if heavy is None else "float64")
    if type(numbers) is KnownElements and (heavy is None or type(heavy) is KnownElements) and not tracer.depth:
        places = numbers.array.astype(np.int64)
        places = np.where(places < 0, minlength, places)  # beyond the end
        np.add.at(counts, places, 1 if heavy is None else heavy.array.astype(np.float64))
        return counts
    if heavy is not None:
        require_same_length(tracer, numbers.length, heavy.length)

    def count(index: Any) -> None:
        number = numbers.at(index)
        tracer.checks.append(elementwise("less", number.node, 0))
        counts[number] += 1 if heavy is None else heavy.at(index).astype(np.float64)

    numbers.each(count)
    return counts


@overrides(np.argwhere)
def argwhere(a: Any) -> DynamicSlice:
    """The index tuples of nonzero elements, one in each row."""
    array = of_array(a)
    if not array.ndim:
        raise UnknownSizeError("numpy.argwhere of a number")
    found = flatnonzero(array)
    capacity = found.base.shape[0]
    base = SERVICES["zeros"](array.tracer, (capacity, array.ndim), "int64")

    def split(index: Any) -> None:
        number = found.at(index)
        for axis in range(array.ndim - 1, 0, -1):
            base[index, axis] = number % array.shape[axis]
            number = number // array.shape[axis]
        base[index, 0] = number

    found.each(split)
    return DynamicSlice(base, 0, found.stop, owns=True)


def cumsum(array: DynamicArray, axis: Any = None) -> DynamicSlice:
    """``numpy.cumsum`` of an array of computed length."""
    if axis not in (None, 0, -1) or array.ndim != 1 or array.dtype.kind not in "fiub":
        raise UnknownSizeError("numpy.cumsum of an array of computed length, with options")
    dtype = np.dtype("int64") if array.dtype.kind in "ib" else array.dtype
    sums: DynamicSlice = SERVICES["materialize"](array if array.dtype == dtype else array.astype(dtype))
    total = Variable("_jk_total", dtype.type(0))

    def add(index: Any) -> None:
        total.set(total.value + sums.base[index])
        sums.base[index] = total.value

    sums.each(add, total)
    return sums


@overrides(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002
    """The counts and the edges. Raises UnsupportedError where NumPy finds the range, or the bins differ in size."""
    array = of_array(a)
    if density or weights is not None or array.dtype.name not in ("float32", "float64"):
        raise UnsupportedError("numpy.histogram with these options")
    if type(bins) is not int or bins < 1 or not _is_range(range):
        raise UnsupportedError("numpy.histogram without known bins and range")
    low, high = map(float, range)
    edges = np.linspace(range[0], range[1], bins + 1, dtype=array.dtype)
    if not np.all(edges[:-1] < edges[1:]):
        raise UnsupportedError("numpy.histogram of bins without width")
    counts: Traced = lazy_operator("histogram")(ravel(array), bins=bins, low=low, high=high)
    return counts, SERVICES["function"](array.tracer, np.linspace, (*range, bins + 1), {"dtype": array.dtype})


def _is_range(limits: Any) -> bool:
    """Whether limits are two finite numbers, the first of which is less."""
    if type(limits) not in (tuple, list) or len(limits) != 2:
        return False
    if not all(isinstance(limit, Real) and not isinstance(limit, bool) and float(limit) == limit for limit in limits):
        return False
    low, high = map(float, limits)
    return bool(low < high and np.isfinite(high - low))


FUNCTIONS.update({np.count_nonzero: count_nonzero, np.bincount: bincount, np.cumsum: cumsum})
