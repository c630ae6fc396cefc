"""NumPy functions of lists that grow in loops: the elements are the rows of an array."""

from functools import partial
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import fresh
from jitkernels.compiler.capture.control_flow.carried_trees import LeafForm
from jitkernels.compiler.capture.control_flow.dynamic_list import DeferredResult
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList, is_array_backed
from jitkernels.compiler.capture.numpy.masked_proxy import Masked
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.builder import UnsupportedError

FUNCTIONS_OF_ARRAYS = frozenset({
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.sum, np.mean, np.max, np.min, np.prod, np.std, np.var,
    np.cumsum, np.argmax, np.argmin, np.any, np.all, np.median, np.sort, np.diff, np.dot, np.abs, np.sqrt, np.exp,
})  # fmt: skip
"""Functions that convert a list to an array."""
VIEWS = (np.transpose, np.flip, np.flipud, np.fliplr, np.swapaxes)
"""Functions of arrays that take the same time in Python, however long the array is."""


@serves("lists")
def replace_lists(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Replace such lists among the arguments of a NumPy function by arrays; returns function, arguments, keywords."""
    grown = [value for value in (*arguments, *keywords.values()) if _is_grown(value)]
    if not grown:
        return function, arguments, keywords
    first: Any = arguments[0] if arguments else None
    if type(first) is DeferredResult or (type(first) is GrowableList and first.dynamic is not None):
        masked = _masked_array(first)
        numbers = _dynamic_array(first) if masked is None and type(first) is GrowableList else None
        if numbers is not None:
            if function in (np.array, np.asarray, np.asanyarray) and len(arguments) == 1 and not keywords:
                return (lambda: numbers), (), {}
            return partial(SERVICES["function dynamic"], function, (numbers, *arguments[1:]), keywords), (), {}
        if masked is None:
            return partial(_defer, function, arguments, keywords), (), {}
        is_copy = function in (np.array, np.asarray) and len(arguments) == 1 and not keywords
        return (lambda: masked, (), {}) if is_copy else (function, (masked, *arguments[1:]), keywords)
    if not is_array_backed(first) or len(list(filter(is_array_backed, grown))) > 1:
        raise _unsupported(function)
    array: Any = first.whole()
    axis = keywords.get("axis", arguments[1] if len(arguments) > 1 else 0)
    has_axis_only = len(arguments) < 3 and not {*keywords} - {"axis"}
    if function is np.stack and has_axis_only and type(axis) is int:
        return np.ascontiguousarray, (np.moveaxis(array, 0, axis),), {}
    if function is np.vstack and array.ndim == 2 and len(arguments) == 1 and not keywords:
        return np.copy, (array,), {}
    if function is np.column_stack and array.ndim == 2:
        return np.ascontiguousarray, (array.T,), {}
    is_row = array.ndim == 2 if function is np.hstack else array.ndim > 2 and function is np.vstack
    if array.ndim > 1 and axis == 0 and has_axis_only and (function is np.concatenate or is_row):
        return np.reshape, (array, (-1, *array.shape[2:])), {}
    if function not in FUNCTIONS_OF_ARRAYS:
        raise _unsupported(function)
    return function, (array, *arguments[1:]), keywords


def _is_grown(value: Any) -> bool:
    return is_array_backed(value) or type(value) is DeferredResult


def _unsupported(function: Any) -> UnsupportedError:
    return UnsupportedError(f"numpy.{function.__name__} of a list that has grown in a loop")


def _masked_array(grown: Any) -> Masked | None:
    """The numbers of a dynamic list as a masked array, for derivatives, which need no length; None for other lists."""
    dynamic, tracer = grown.dynamic if type(grown) is GrowableList else None, current()
    if dynamic is None or tracer is None or not tracer.differentiates:
        return None
    if dynamic.tracer.depth != dynamic.depth or dynamic.is_reversed or len(dynamic.columns) != 1:
        return None
    (column,) = dynamic.columns
    if type(dynamic.elements.form) is not LeafForm or column.dtype.kind != "f":
        return None
    return Masked(fresh(dynamic.tracer, column.node), fresh(dynamic.tracer, dynamic.element_mask()))


def _dynamic_array(grown: Any) -> Any:
    """The array of the numbers of a dynamic list, of computed length; None for other lists."""
    dynamic = grown.dynamic
    if dynamic.tracer.depth != dynamic.depth or dynamic.depth or len(dynamic.columns) != 1:
        return None
    if type(dynamic.elements.form) is not LeafForm or dynamic.is_reversed or dynamic.elements.is_queue:
        return None
    return SERVICES["array of list"](dynamic)


def _defer(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> DeferredResult:
    """An array of a list whose length only the compiled code knows, deferred until the code has run."""
    first, *others = arguments
    is_view = function in VIEWS and type(first) is DeferredResult
    if not (is_view or function in (np.array, np.asarray)) or any(map(is_array_backed, (*others, *keywords.values()))):
        raise _unsupported(function)
    operand = first if type(first) is DeferredResult else DeferredResult(list, first.dynamic.snapshot())
    return DeferredResult(lambda values: function(values, *others, **keywords), operand)
