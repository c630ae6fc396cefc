"""Slices at bounds that only the compiled code knows: views, as in ``indices[p[i]:p[i + 1]]`` and ``out[:n]``.

A result of computed size, as ``np.zeros(n)``, is the first `n` elements of an array that is large enough.
"""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.dynamic_list import DynamicList
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable, LoopRange
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.dynamic.dynamic_array import (
    DynamicArray,
    Source,
    applied,
    as_operand,
    is_int,
    is_reversal,
    require_same_length,
)
from jitkernels.compiler.capture.dynamic.dynamic_gather import assign_masked
from jitkernels.compiler.capture.ints import induction_symbols, intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.numpy.masked_proxy import is_congruent
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.unsupported import UnknownSizeError


class DynamicSlice(DynamicArray):
    """``base[start:stop]`` along the first dimension, with bounds clamped to it. `owns`: NumPy makes a new array."""

    def __init__(self, base: Traced, start: Any, stop: Any, *, owns: bool = False) -> None:
        length = stop if type(start) is int and start == 0 else _difference(base.tracer, start, stop)
        super().__init__(base.tracer, length, base.dtype)
        self.base, self.start, self.stop, self.owns = base, start, stop, owns

    @property
    def sources(self) -> list[Source]:
        storage = self.base.view.storage
        return [(storage, storage.node)]

    @property
    def ndim(self) -> int:
        return self.base.ndim

    @property
    def shape(self) -> tuple[Any, ...]:
        return (self.length, *self.base.shape[1:])

    @property
    def size(self) -> Any:
        size = self.length
        for extent in self.base.shape[1:]:
            size = size * extent
        return size

    def loop_iterable(self) -> LoopIterable:
        base = self.base
        return LoopIterable(LoopRange(self.start, self.stop), lambda index: base[index], (base,))

    def position(self, index: Any, *, is_inside: bool = True) -> Any:
        """The index in the base of an element. `is_inside`: its index is surely in bounds."""
        if type(self.start) is int and self.start == 0:
            return index
        node = elementwise("add", as_int(self.tracer, self.start), as_int(self.tracer, index))
        if is_inside:
            intervals.note(self.tracer, node, (0, self.base.extents[0] - 1))
        return as_number(self.tracer, node, int)

    def at(self, index: Any) -> Any:
        return self.base[self.position(index)]

    def __getitem__(self, key: Any) -> Any:
        first, *others = key if type(key) is tuple and key else (key,)
        if type(first) is slice and self._are_known(others):
            part = DynamicSlice(self.base[(slice(None), *others)], self.start, self.stop) if others else self
            return part.reversed() if is_reversal(first) else part._sliced(first)
        if not is_int(first):
            return super().__getitem__(key)
        return self.base[(self._element(first), *others)]

    def _are_known(self, others: list[Any]) -> bool:
        """Whether keys of the dimensions behind the first one are ints, or slices at known bounds: of views."""
        return all(
            is_int(part) or (type(part) is slice and not any(map(is_computed, (part.start, part.stop))))
            for part in others
        )

    def _element(self, index: Any) -> Any:
        """The index in the base of the element at any index, which bails out where it is out of bounds."""
        return self.position(self.checked_index(index), is_inside=False)

    def _sliced(self, key: slice) -> "DynamicSlice":
        start, stop = bounds_of(self.tracer, key, self.length)
        if type(self.start) is int and self.start == 0:
            return DynamicSlice(self.base, start, stop)
        parts = []
        for bound in (start, stop):
            node = elementwise("add", as_int(self.tracer, self.start), as_int(self.tracer, bound))
            intervals.note(self.tracer, node, (0, self.base.extents[0]))
            parts.append(as_number(self.tracer, node, int))
        return DynamicSlice(self.base, *parts)

    def __setitem__(self, key: Any, value: Any) -> None:
        first, *others = key if type(key) is tuple and key else (key,)
        if type(first) is slice and self._are_known(others):
            part = DynamicSlice(self.base[(slice(None), *others)], self.start, self.stop) if others else self
            part._sliced(first).assign(value)
        elif isinstance(first, DynamicArray) and first.dtype == "bool" and not others and self.ndim == 1:
            assign_masked(self, first, value)
        elif first is Ellipsis and not others:
            self.assign(value)
        elif isinstance(first, slice | DynamicArray | np.ndarray | list) or first is None:
            raise UnknownSizeError("an assignment to elements of an array of computed length")
        else:
            self.base[(self._element(first), *others)] = value

    def assign(self, value: Any) -> None:
        """Assign to all elements."""
        if self._is_itself(value):
            return
        elements = self._unaliased(as_operand(self.tracer, value))
        is_array = isinstance(elements, DynamicArray)
        if is_array:
            require_same_length(self.tracer, self.length, elements.length)

        def assign(index: Any) -> None:
            element = elements.at(index) if is_array else elements
            self.base[self.position(index)] = element

        self.each(assign)

    def _unaliased(self, operand: Any) -> Any:
        """An operand of an assignment to these elements; copied where it is computed from others of this array."""
        storage = self.base.view.storage
        if isinstance(operand, DynamicArray) and any(source is storage for source, _ in operand.sources):
            return SERVICES["materialize"](operand)
        return operand

    def _is_itself(self, value: Any) -> bool:
        """Whether a value is this slice, as it is for the assignment of ``a[i:j] += b``."""
        return (
            type(value) is DynamicSlice
            and value.base.view.storage is self.base.view.storage
            and is_congruent(value.base.node, self.base.node)
            and all(
                is_congruent(as_int(self.tracer, a), as_int(self.tracer, b))
                for a, b in ((value.start, self.start), (value.stop, self.stop))
            )
        )

    def operate_in_place(self, ufunc: Any, other: Any) -> Any:
        elements = self._unaliased(as_operand(self.tracer, other))
        is_array = isinstance(elements, DynamicArray)
        if self.ndim != 1:
            raise UnknownSizeError(f"numpy.{ufunc.__name__} in place of rows of computed number")
        result = applied(self.tracer, ufunc, (self, other))
        if not np.can_cast(result.dtype, self.dtype, "same_kind"):
            raise UnknownSizeError(f"numpy.{ufunc.__name__} in place")

        def assign(index: Any) -> None:
            position = self.position(index)
            element = elements.at(index) if is_array else elements
            self.base[position] = ufunc(self.base[position], element)

        self.each(assign)
        return self


class DynamicColumns(DynamicArray):
    """``base[:, start:stop]``, the transpose of a number of rows that is computed."""

    def __init__(self, rows: DynamicSlice) -> None:
        super().__init__(rows.tracer, rows.base.shape[1], rows.dtype)
        self.rows = rows

    @property
    def sources(self) -> list[Source]:
        return self.rows.sources

    @property
    def ndim(self) -> int:
        return 2

    @property
    def shape(self) -> tuple[Any, ...]:
        return (self.length, self.rows.length)

    @property
    def size(self) -> Any:
        return self.length * self.rows.length

    @property
    def T(self) -> DynamicSlice:  # noqa: N802  # as NumPy's
        return self.rows

    def at(self, index: Any) -> DynamicSlice:
        return DynamicSlice(self.rows.base[:, index], self.rows.start, self.rows.stop)

    def __getitem__(self, key: Any) -> Any:
        first, *others = key if type(key) is tuple and key else (key,)
        if not is_int(first):
            raise UnknownSizeError("rows of columns of computed number")
        return self.at(first)[tuple(others)] if others else self.at(first)

    def assign(self, value: Any) -> None:
        """Assign a number to all elements."""
        self.rows.assign(value)


def _difference(tracer: Tracer, start: Any, stop: Any) -> Any:
    """``max(stop - start, 0)``."""
    first, last = as_int(tracer, start), as_int(tracer, stop)
    node = elementwise("maximum", elementwise("subtract", last, first), 0)
    bounds = intervals.interval(tracer, stop)
    intervals.note(tracer, node, (0, intervals.FAR_LIMIT if bounds is None else bounds[1]))
    return as_number(tracer, node, int)


@serves("array of list")
def array_of_list(grown: DynamicList) -> DynamicSlice:
    """A new array of the numbers of a list. Calls in which the list is empty bail out: that array is one of float64."""
    (column,) = grown.columns
    result = DynamicSlice(fresh(grown.tracer, column.node), 0, grown.end(), owns=True)
    if result.dtype != "float64":
        grown.tracer.checks.append(elementwise("less_equal", as_int(grown.tracer, result.length), 0))
    return result


def is_computed(value: Any) -> bool:
    """Whether a value is an int that only the compiled code knows, and no polynomial of induction variables."""
    if not induction_symbols.is_traced_int(value) or value.dtype == "uint64":
        return False
    tracer, node = value.tracer, value.node
    if not tracer.depth and tracer.is_known(node):
        return False
    return induction_symbols.extent_of_node(tracer, node) is None


def bounds_of(tracer: Tracer, key: slice, length: Any) -> tuple[Any, Any]:
    """Start and stop of a slice of an array, as NumPy clamps them."""
    if key.step is not None and key.step != 1:
        raise UnknownSizeError("a step of a slice at computed bounds")
    start = 0 if key.start is None else _clamped(tracer, key.start, length)
    return start, _clamped(tracer, length if key.stop is None else key.stop, length)


def _clamped(tracer: Tracer, value: Any, length: Any) -> Any:
    """A bound of a slice, clamped to a length."""
    if value is length:
        return value
    if not is_int(value):
        raise UnknownSizeError("a bound of a slice that is no int")
    node = given = as_int(tracer, value)
    most = as_int(tracer, length)
    bounds, limits = intervals.interval(tracer, value), intervals.interval(tracer, length)
    low, high = limits if limits is not None else (0, intervals.FAR_LIMIT)
    if type(value) is int and value == 0:
        return 0
    if not intervals.is_natural(bounds):
        from_end = elementwise("maximum", elementwise("add", node, most), 0)
        node = Node("where", (elementwise("less", node, 0), from_end, node), "int64", ())
    if bounds is None or not intervals.is_at_most(bounds[1], low):
        node = elementwise("minimum", node, most)
    if node is not given:
        intervals.note(tracer, node, (0, high))
    return as_number(tracer, node, int)


def _without_ellipsis(array: Traced, parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of a key, with slices of whole dimensions in place of ``...``."""
    positions = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(positions) != 1:
        return parts
    selected = sum(part is not None for part in parts) - 1
    whole = (slice(None),) * (array.ndim - selected)
    return (*parts[: positions[0]], *whole, *parts[positions[0] + 1 :])


def dynamic_slice(array: Traced, key: Any) -> DynamicSlice | DynamicColumns | None:
    """The slice at computed bounds that a key selects; None for other keys."""
    parts = _without_ellipsis(array, key if type(key) is tuple else (key,))
    computed = [
        i for i, part in enumerate(parts) if type(part) is slice and any(map(is_computed, (part.start, part.stop)))
    ]
    if not computed:
        return None
    if len(computed) > 1 or any(part is None for part in parts):
        raise UnknownSizeError("several slices at computed bounds")
    position = computed[0]
    others = [*parts[:position], *parts[position + 1 :]]
    if not all(is_int(part) or type(part) is slice for part in others):  # of which NumPy makes a copy
        raise UnknownSizeError("an index array beside a slice at computed bounds")
    base = array
    if len(parts) > 1:
        base = array[(*parts[:position], slice(None), *parts[position + 1 :])]
        before = sum(type(part) is slice for part in parts[:position])
        if before == 1 and base.ndim == 2:
            return DynamicColumns(DynamicSlice(base.T, *bounds_of(array.tracer, parts[position], base.shape[1])))
        if before:
            raise UnknownSizeError("a slice at computed bounds behind other slices")
    return DynamicSlice(base, *bounds_of(array.tracer, parts[position], base.shape[0]))
