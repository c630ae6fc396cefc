"""New arrays of computed size: the first elements of an array that is as large as the size can be."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, traced
from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.control_flow.trace_branch import trace_if
from jitkernels.compiler.capture.dynamic.dynamic_array import FUNCTIONS, DynamicArray, KnownElements, as_operand
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice, is_computed
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.masked_proxy import Masked
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, is_loop_variant
from jitkernels.compiler.ir.unsupported import UnknownSizeError

MAX_KNOWN_CAPACITY = 2**16
"""The largest number of elements, or multiple of an extent, for which memory is taken without counting first."""


@serves("filled dynamic")
def filled(tracer: Tracer, shape: Any, make: Any) -> DynamicSlice | None:
    """An array whose first extent is computed; `make` makes one of a known shape. None for known shapes."""
    sizes = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    if not any(map(is_computed, sizes)):
        return None
    if any(map(is_computed, sizes[1:])):
        raise UnknownSizeError("a computed size of another dimension than the first one")
    count, node = sizes[0], as_int(tracer, sizes[0])
    bounds = intervals.interval(tracer, count)
    if not intervals.is_natural(bounds):
        tracer.checks.append(elementwise("less", node, 0))
    size = as_number(tracer, node, int)
    base = make((as_symint(tracer, capacity(tracer, size)), *sizes[1:]))
    return DynamicSlice(base, 0, size, owns=True)


def capacity(tracer: Tracer, size: Any) -> Number:
    """The number of elements that an array of computed size needs at most."""
    bounds = intervals.interval(tracer, size)
    most: Number = None if bounds is None else bounds[1]
    if most is not None and _is_linear(most) and intervals.guarded_at_least_zero(most):
        return most
    most = tracer.room()
    node = as_int(tracer, size)
    options = {"extent": most, "counts_back": False, "grows": True}

    def check() -> None:
        """The call restarts with more room where the last element is behind it."""
        last = Node("bounded", (elementwise("subtract", node, 1),), "int64", (), options)
        tracer.checks.append(elementwise("less", last, 0))

    trace_if(
        tracer, as_number(tracer, elementwise("greater", node, 0), bool), check, lambda: None, Variable("_jk_size")
    )
    return most


def _is_linear(extent: Number) -> bool:
    """Whether a bound is about as large as an array of the call: the number of pairs of elements may be too large."""
    if not isinstance(extent, Extent):
        return bool(extent <= MAX_KNOWN_CAPACITY)
    counts = extent.terms.items()
    return not is_loop_variant(extent) and all(
        len(monomial) <= 1 and abs(count) <= MAX_KNOWN_CAPACITY and not any(atom.operation for atom in monomial)
        for monomial, count in counts
    )


def memory_for(array: DynamicArray, value: Any, dtype: Any) -> DynamicSlice:
    """A new array of the shape of one, all elements of whose memory have the same value."""
    tracer = array.tracer
    size = as_symint(tracer, capacity(tracer, array.length))
    base = SERVICES["full"](tracer, (size, *array.shape[1:]), value, dtype)
    return DynamicSlice(base, 0, as_number(tracer, as_int(tracer, array.length), int), owns=True)


@serves("materialize")
def materialized(array: DynamicArray) -> DynamicSlice:
    """A new array of the elements."""
    result = memory_for(array, 0, array.dtype)
    result.assign(array)
    return result


def _elements(tracer: Tracer, array: Any) -> Any:
    """An array to concatenate: one element is not broadcast."""
    if isinstance(array, list | tuple | np.ndarray):
        array = traced(tracer, array)
    is_known = type(array) is Traced and array.ndim == 1
    return KnownElements(array) if is_known else as_operand(tracer, array)


def concatenated(arrays: Sequence[Any], axis: Any = 0) -> DynamicSlice:
    """``numpy.concatenate`` of vectors."""
    tracer = next(array for array in arrays if isinstance(array, DynamicArray)).tracer
    parts = [_elements(tracer, array) for array in arrays]
    if axis not in (0, None) or not all(isinstance(part, DynamicArray) and part.ndim == 1 for part in parts):
        raise UnknownSizeError("numpy.concatenate of arrays of computed length and others than vectors")
    most: Number = 0
    ends: list[Any] = [0]
    for part in parts:
        most = most + capacity(tracer, part.length)
        ends.append(ends[-1] + as_number(tracer, as_int(tracer, part.length), int))
    base = SERVICES["zeros"](tracer, as_symint(tracer, most), np.result_type(*(part.dtype for part in parts)))
    for part, begin, end in zip(parts, ends[:-1], ends[1:], strict=True):
        DynamicSlice(base, begin, end).assign(part)
    return DynamicSlice(base, 0, ends[-1], owns=True)


FUNCTIONS[np.concatenate] = FUNCTIONS[np.hstack] = concatenated


def as_result(value: Any) -> Any:
    """An array of computed length as a part of the result of a call, with memory of its own."""
    if type(value) is Masked:
        value = value.dense()
    return materialized(value) if isinstance(value, DynamicArray) and type(value) is not DynamicSlice else value


def build(value: DynamicSlice, make: Any, *, is_shared: bool) -> Any:
    """How to build a slice once the base and the bounds are known. `is_shared`: the result has others of its base."""
    base = make(value.base)
    start, stop = (make(bound) if type(bound) is Traced else None for bound in (value.start, value.stop))

    def part(known: Any) -> Any:
        array = base(known)
        first = value.start if start is None else start(known)
        last = value.stop if stop is None else stop(known)
        if not value.owns or is_shared:
            return array[first:last]
        if not (array.flags.owndata and array.flags.c_contiguous):
            return array[:last].copy()
        array.resize((last, *array.shape[1:]), refcheck=False)
        return array

    return part
