"""NumPy functions of lists that grow in loops: the elements are the rows of an array."""

from functools import partial
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import fresh
from jitkernels.compiler.capture.control_flow.carried_trees import Leaf
from jitkernels.compiler.capture.control_flow.dynamic_list import Later
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList, is_array_backed
from jitkernels.compiler.capture.numpy.masked_proxy import Masked
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.builder import UnknownError

WHOLE = frozenset({
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.sum, np.mean, np.max, np.min, np.prod, np.std, np.var,
    np.cumsum, np.argmax, np.argmin, np.any, np.all, np.median, np.sort, np.diff, np.dot, np.abs, np.sqrt, np.exp,
})  # fmt: skip
"""Functions that convert a list to an array."""


@serves("lists")
def as_arrays(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Replace such lists among the arguments of a NumPy function by arrays; returns function, arguments, keywords."""
    if not any(is_array_backed(value) or type(value) is Later for value in (*arguments, *keywords.values())):
        return function, arguments, keywords
    if arguments and (
        type(arguments[0]) is Later or (type(arguments[0]) is GrowableList and arguments[0].counted is not None)
    ):
        masked = _masked(arguments[0])
        if masked is not None:
            is_copy = function in (np.array, np.asarray) and len(arguments) == 1 and not keywords
            return (lambda: masked, (), {}) if is_copy else (function, (masked, *arguments[1:]), keywords)
        return partial(_deferred, function, arguments, keywords), (), {}
    if (
        not arguments
        or not is_array_backed(arguments[0])
        or any(map(is_array_backed, (*arguments[1:], *keywords.values())))
    ):
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    array: Any = arguments[0].whole()
    axis = keywords.get("axis", arguments[1] if len(arguments) > 1 else 0)
    merged = array.ndim > 1 and axis == 0 and len(arguments) < 3 and not {*keywords} - {"axis"}
    if function is np.stack and len(arguments) < 3 and not {*keywords} - {"axis"} and type(axis) is int:
        return np.ascontiguousarray, (np.moveaxis(array, 0, axis),), {}
    if function is np.vstack and array.ndim == 2 and len(arguments) == 1 and not keywords:
        return np.copy, (array,), {}
    if function is np.column_stack and array.ndim == 2:
        return np.ascontiguousarray, (array.T,), {}
    is_row = array.ndim == 2 if function is np.hstack else array.ndim > 2 and function is np.vstack
    if merged and (function is np.concatenate or is_row):
        return np.reshape, (array, (-1, *array.shape[2:])), {}
    if function not in WHOLE:
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    return function, (array, *arguments[1:]), keywords


def _masked(grown: Any) -> Masked | None:
    """The numbers of a dynamic list as a masked array, for derivatives, which need no length; None for other lists."""
    dynamic, tracer = grown.counted if type(grown) is GrowableList else None, current()
    if dynamic is None or tracer is None or not tracer.differentiates:
        return None
    if dynamic.tracer.depth != dynamic.depth or dynamic.is_reversed or len(dynamic.columns) != 1:
        return None
    (column,) = dynamic.columns
    if type(dynamic.elements.form) is not Leaf or column.dtype.kind != "f":
        return None
    return Masked(fresh(dynamic.tracer, column.node), fresh(dynamic.tracer, dynamic.inside()))


def _deferred(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Later:
    """An array of a list whose length only the compiled code knows, deferred until the code has run."""
    first, *others = arguments
    if function not in (np.array, np.asarray) or any(is_array_backed(value) for value in (*others, *keywords.values())):
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    of = first if type(first) is Later else Later(list, first.counted.finished())
    return Later(lambda values: function(values, *others, **keywords), of)
