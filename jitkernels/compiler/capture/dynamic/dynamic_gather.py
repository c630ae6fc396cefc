"""Gathers and scatters at indices of computed number, and assignments under masks of computed length."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.dynamic.distinct_updates import update_distinct
from jitkernels.compiler.capture.dynamic.dynamic_array import (
    OVERLAP,
    DynamicArray,
    Elementwise,
    KnownElements,
    Source,
    as_operand,
    lazy_or_copied,
    require_same_length,
)
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.override_registry import SERVICES, TABLE, serves
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.unsupported import UnknownSizeError


@serves("gather dynamic")
def gathered(array: Any, indices: DynamicArray) -> Any:
    """``array[indices]``, or the elements that a mask selects."""
    if indices.dtype == "bool":
        return SERVICES["select dynamic"](array, indices)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or indices.dtype == "uint64":
        raise UnknownSizeError("indices of computed number that are no vector of ints")
    if array.ndim == 2 and type(array) is Traced:
        return GatheredRows(array, indices)
    if array.ndim != 1:
        raise UnknownSizeError("indices of computed number for an array of several dimensions")
    if type(array) is Traced:
        storage = array.view.storage
        sources = [(storage, storage.node)]
    else:
        sources = array.sources

    def read(index: Any) -> Any:
        return array[indices.at(index)]

    result = Elementwise.unchecked(indices.tracer, indices.length, array.dtype, read, [*sources, *indices.sources])
    if type(array) is Traced:
        result.gathers = [(array, indices)]
    return lazy_or_copied(result)


@serves("gather known")
def gathered_at_known(array: Any, indices: Traced) -> Any:
    """``array[indices]`` of an array of computed length; calls in which an index is out of bounds bail out."""
    if array.ndim != 1 or indices.dtype == "uint64":
        raise UnknownSizeError("rows of computed number at indices")
    memory = array if hasattr(array, "base") else SERVICES["materialize"](array)
    length = as_number(array.tracer, as_int(array.tracer, array.length), int)
    places: Any = indices.astype(np.int64)
    places = np.where(places < 0, places + length, places)
    is_inside: Any = np.all((places >= 0) & (places < length))
    array.tracer.checks.append(elementwise("logical_not", is_inside.node))
    return memory.base[places + memory.start]


class GatheredRows(DynamicArray):
    """``array[indices]`` of a matrix, whose rows are read where a product or sum uses them."""

    def __init__(self, array: Traced, indices: DynamicArray) -> None:
        super().__init__(indices.tracer, indices.length, array.dtype)
        self._array, self._indices = array, indices
        storage = array.view.storage
        self._sources = [(storage, storage.node), *indices.sources]  # as they are now: NumPy copies the rows

    @property
    def sources(self) -> list[Source]:
        return self._sources

    @property
    def ndim(self) -> int:
        return 2

    @property
    def shape(self) -> tuple[Any, ...]:
        return (self.length, self._array.shape[1])

    @property
    def size(self) -> Any:
        return self.length * self._array.shape[1]

    def at(self, index: Any) -> Any:
        if any(storage.node is not node for storage, node in self._sources):
            raise UnknownSizeError("a matrix or indices change while rows gathered with them are in use")
        return self._array[self._indices.at(index)]

    def check_unread(self) -> None:
        raise UnknownSizeError("single rows of a matrix that is gathered at a slice of indices")


def scatter_elements(array: Traced, indices: DynamicArray, value: Any) -> None:
    """``array[indices] = value``, also where a mask is true."""
    if array.ndim != 1 or indices.dtype.kind not in "iub" or indices.dtype == "uint64":
        raise UnknownSizeError("indices of computed number for an array of several dimensions")
    if indices.dtype == "bool":
        assign_masked(array, indices, value)
        return
    elements = as_operand(array.tracer, value)
    is_array, storage = isinstance(elements, DynamicArray), array.view.storage
    if is_array and any(source is storage for source, _ in elements.sources):
        if (
            array.tracer.depth
            and type(elements) is Elementwise
            and elements.reads_only_at(array, indices)
            and all(source is not storage for source, _ in indices.sources)
        ):
            require_same_length(array.tracer, indices.length, elements.length)
            update_distinct(array, indices, elements)
            return
        elements = SERVICES["materialize"](elements)  # an index may occur twice
    if any(source is storage for source, _ in indices.sources):
        raise UnknownSizeError(OVERLAP)
    if is_array:
        require_same_length(array.tracer, indices.length, elements.length)

    def assign(index: Any) -> None:
        array[indices.at(index)] = elements.at(index) if is_array else elements

    indices.each(assign)


def update_elements(ufunc: Any, array: Traced, indices: Any, value: Any) -> None:
    """``ufunc.at(array, indices, value)`` of vectors, one index after the other."""
    tracer, name = array.tracer, f"numpy.{ufunc.__name__}.at"
    if array.ndim != 1 or ufunc.nout != 1 or ufunc.nin != (1 if value is None else 2):
        raise UnknownSizeError(f"{name} of {array.ndim} dimensions")
    places, *others = (_as_they_are(as_operand(tracer, part)) for part in (indices, value) if part is not None)
    if not isinstance(places, DynamicArray) or places.dtype.kind not in "iu" or places.dtype == "uint64":
        raise UnknownSizeError(f"{name} at other indices than those of a vector")
    for other in others:
        if isinstance(other, DynamicArray):
            require_same_length(tracer, places.length, other.length)

    def update(index: Any) -> None:
        place = places.at(index)
        element = ufunc(array[place], *(part.at(index) if isinstance(part, DynamicArray) else part for part in others))
        if not np.can_cast(element.dtype, array.dtype, "same_kind"):
            raise UnknownSizeError(f"{name} of other types")
        array[place] = element

    places.each(update)


def _as_they_are(operand: Any) -> Any:
    """The operand before anything is written to an array of which it may be a view."""
    return KnownElements(fresh(operand.tracer, operand.array.node)) if type(operand) is KnownElements else operand


def assign_masked(array: Any, mask: DynamicArray, value: Any) -> None:
    """``array[mask] = number``; `array`: of computed length, or not."""
    number = as_operand(mask.tracer, value)
    if isinstance(number, DynamicArray):
        raise UnknownSizeError("an array is assigned to elements chosen by a mask of computed length")
    require_same_length(mask.tracer, mask.length, array.shape[0])
    at = array.position if isinstance(array, DynamicArray) else lambda index: index
    base = array.base if isinstance(array, DynamicArray) else array

    def assign(index: Any) -> None:
        is_chosen, before = mask.at(index), base[at(index)]
        base[at(index)] = TABLE[np.where](is_chosen, base.dtype.type(number), before)

    mask.each(assign)
