"""Compaction: the elements that a mask selects, next to each other, and the indices of true elements."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.iterables import element_loop
from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.dynamic.computed_size import capacity
from jitkernels.compiler.capture.dynamic.dynamic_array import DynamicArray, KnownElements, require_same_length
from jitkernels.compiler.capture.dynamic.dynamic_slice import DynamicSlice
from jitkernels.compiler.capture.dynamic.masked_selection import MaskedSelection
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.shape_ops import of_array
from jitkernels.compiler.capture.override_registry import SERVICES, overrides, serves
from jitkernels.compiler.capture.symint import as_symint
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import UnknownSizeError


@serves("compress")
def compressed(array: Traced, mask: Traced) -> DynamicSlice:
    """``array[mask]``. Each element is stored behind those selected before; the next one overwrites a rejected one."""
    if mask.ndim != array.ndim:
        raise UnknownSizeError("rows chosen by a mask")
    source = _flat(array)
    return _compaction(_flat(mask), array.node.dtype, lambda index: source[index].node)


def _flat(array: Traced) -> Traced:
    """The elements in C order."""
    if array.ndim == 1:
        return array
    return fresh(array.tracer, builder.reshape(array.node, (symbolic_dims.product(array.extents),)))


def _compaction(mask: Any, dtype: str, element: Callable[[Any], Node]) -> DynamicSlice:
    """The values of `element` for the indices at which a mask is true; also for a mask of computed length."""
    tracer, is_dynamic = mask.tracer, isinstance(mask, DynamicArray)
    length = mask.length if is_dynamic else mask.shape[0]
    size = capacity(tracer, length) if is_dynamic else mask.extents[0]
    if symbolic_dims.is_loop_variant(size):
        size = capacity(tracer, length)
    found: Traced = SERVICES["zeros"](tracer, as_symint(tracer, size), dtype)
    count = Variable("_jk_count", 0)

    def body(index: Any) -> None:
        storage = found.view.storage
        position = as_int(tracer, count.value)  # at most the index
        storage.change(
            Node("scatter", (storage.node, element(index), position), dtype, storage.node.shape, {"axis": 0})
        )
        step = builder.cast((mask.at(index) if is_dynamic else mask[index]).node, "int64")
        intervals.note(tracer, step, (0, 1))
        count.set(count.value + as_number(tracer, step, int))

    SERVICES["for"](element_loop(length), None, body, count)
    node = as_int(tracer, count.value)
    intervals.note(tracer, node, (0, size))
    return DynamicSlice(found, 0, as_number(tracer, node, int), owns=True)


@serves("select dynamic")
def selected(array: Any, mask: DynamicArray) -> DynamicArray:
    """``array[mask]`` with a mask of computed length; in loops, without memory as an operand of reductions."""
    if array.ndim != 1 or mask.ndim != 1:
        raise UnknownSizeError("rows chosen by a mask of computed length")
    require_same_length(mask.tracer, mask.length, array.shape[0])
    if mask.tracer.depth and not mask.tracer.copies_dynamic:
        return MaskedSelection(array if isinstance(array, DynamicArray) else KnownElements(array), mask)
    at = array.at if isinstance(array, DynamicArray) else array.__getitem__
    return _compaction(mask, array.dtype.name, lambda index: at(index).node)


@overrides(np.flatnonzero)
def flatnonzero(a: Any) -> DynamicSlice:
    array = of_array(a)
    truth = array.node if array.dtype == "bool" else builder.elementwise("not_equal", array.node, 0)
    return _compaction(_flat(fresh(array.tracer, truth)), "int64", lambda index: as_int(array.tracer, index))


@serves("nonzero")
@overrides(np.nonzero, methods="nonzero")
def nonzero(a: Any) -> tuple[Any, ...]:
    array, found = of_array(a), flatnonzero(a)
    if not array.ndim:
        raise UnknownSizeError("numpy.nonzero of a number")  # NumPy raises
    if array.ndim == 1:
        return (found,)
    indices: list[Any] = []
    below: Any = found
    for extent in reversed(array.shape[1:]):
        indices.insert(0, below % extent)
        below = below // extent
    return (below, *indices)
