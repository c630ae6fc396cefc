"""``sum``, ``min``, ``max``, ``any`` and ``all`` of arrays and of lists that have grown in a loop: loops of elements.

Python's order and types: sums are added up from the first element on, and an extreme is the first of equal elements.
"""

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow import loop_state
from jitkernels.compiler.capture.control_flow.dynamic_list import DynamicList
from jitkernels.compiler.capture.control_flow.growing_list import is_array_backed
from jitkernels.compiler.capture.control_flow.iterables import RunTimeIterable
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.control_flow.runtime_hooks import for_
from jitkernels.compiler.capture.control_flow.tagged_union import TaggedUnion
from jitkernels.compiler.capture.dynamic.dynamic_array import DynamicArray
from jitkernels.compiler.capture.dynamic.dynamic_reductions import require_elements
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int, min_or_max
from jitkernels.compiler.capture.numpy.masked_proxy import Masked
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.python_numbers.compensated_sum import COMPENSATES, sum_end, sum_step
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.ir.builder import elementwise


def _is_vector(values: Any) -> bool:
    """Whether this is an array of one dimension that has elements, in every call of the specialization."""
    return type(values) is Traced and values.ndim == 1 and bool(values.size != 0)


def _sum(values: Any, start: Any = 0) -> Any:
    """``sum`` of an array, also one of computed length, or of a list that has grown in a loop, by another loop."""
    is_iterable = isinstance(values, RunTimeIterable)
    if not is_array_backed(values) and not is_iterable and not _is_vector(values):
        return _sum_of_list(values, start)
    if type(values) is Masked:
        values = values.dense()
    if isinstance(values, DynamicArray) and type(start) is int:
        require_elements(values)  # of no elements the sum is Python's int
    if not is_iterable and is_array_backed(values) and values.dynamic is not None and loop_state.kind_of(start) is int:
        _require_no_empty_sum(values.dynamic)
    if type(values) is Traced or is_iterable or values.rows is None or values.rows.kind is not None:
        return _sum_by_loop(values, start)
    return np.sum(values.whole(), axis=0) + start


def _sum_of_list(values: Any, start: Any) -> Any:
    if not COMPENSATES or isinstance(start, str | bytes | bytearray):
        return builtins.sum(values, start)
    elements = [*values]
    is_traced = any(type(element) in (Traced, SymInt, TaggedUnion) for element in (*elements, start))
    if not is_traced:
        return builtins.sum(elements, start)
    total, compensation = start, 0.0
    for element in elements:
        total, compensation = sum_step(total, compensation, element)
    return sum_end(total, compensation)


def _sum_by_loop(values: Any, start: Any) -> Any:
    total = loop_state.Variable("_jk_total", start)
    if not COMPENSATES or type(values) is Traced:
        for_(values, None, lambda element: total.set(total.value + element), total)
        return total.value
    compensation = loop_state.Variable("_jk_compensation", 0.0)

    def put(sums: tuple[Any, ...]) -> None:
        total.value, compensation.value = sums

    state = loop_state.State((*total.names, *compensation.names), lambda: (total.value, compensation.value), put, 0)
    for_(values, None, lambda element: put(sum_step(total.value, compensation.value, element)), state)
    return sum_end(total.value, compensation.value)


def _require_no_empty_sum(grown: DynamicList) -> None:
    """Bail out of calls in which a list of Python's floats is empty: its sum is the int from which it starts."""
    if grown.elements.kinds == (float,):
        grown.tracer.checks.append(elementwise("less_equal", as_int(grown.tracer, grown.length), 0))


def _extreme(name: str, better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``min`` or ``max``, of an array as well."""
    of_numbers = CALLED[getattr(builtins, name)]

    def call(*arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and type(arguments[0]) in (tuple, list) and len(arguments[0]) > 1:
            arguments = (*arguments[0],)
        if len(arguments) != 1 or options or not _is_vector(arguments[0]):
            return of_numbers(*arguments, **options)
        values = arguments[0]
        best = loop_state.Variable("_jk_extreme", values[0])
        for_(values[1:], None, lambda element: best.set(min_or_max(values.tracer, (best.value, element), better)), best)
        return best.value

    return call


def _truth(name: str) -> Callable[..., Any]:
    """``any`` or ``all``: of an array, NumPy's as a Python bool."""

    def call(values: Any) -> Any:
        if not _is_vector(values):
            return getattr(builtins, name)(values)
        return as_number(values.tracer, getattr(np, name)(values).node, bool)

    return call


def _reduction(ufunc: Any) -> Callable[..., Any]:
    """``ufunc.reduce``, of a list of arrays as well: the operator between one after the other."""

    def call(values: Any, *arguments: Any, **options: Any) -> Any:
        if type(values) not in (list, tuple) or not values or not any(type(value) is Traced for value in values):
            return ufunc.reduce(values, *arguments, **options)
        if arguments not in ((), (0,)) or set(options) - {"axis"} or options.get("axis", 0) != 0:
            return ufunc.reduce(np.stack(values), *arguments, **options)
        first, *others = np.broadcast_arrays(*values)
        return functools.reduce(ufunc, others, first.copy())

    return call


for _ufunc in (np.add, np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or):
    CALLED[_ufunc.reduce] = _reduction(_ufunc)
CALLED[builtins.sum] = _sum
CALLED[builtins.max], CALLED[builtins.min] = _extreme("max", operator.gt), _extreme("min", operator.lt)
CALLED[builtins.any], CALLED[builtins.all] = _truth("any"), _truth("all")
