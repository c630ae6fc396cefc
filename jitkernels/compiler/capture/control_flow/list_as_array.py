"""What NumPy's functions make of lists that grow in loops: their elements are the rows of an array."""

from functools import partial
from typing import Any

import numpy as np

from jitkernels.frontends.flow.counted import Later
from jitkernels.frontends.flow.growing import Listed, is_grown
from jitkernels.frontends.flow.structures import Leaf
from jitkernels.frontends.masked import Masked
from jitkernels.frontends.tables import serves
from jitkernels.frontends.traced import fresh
from jitkernels.frontends.tracer import current
from jitkernels.graph.construct import UnknownError

WHOLE = frozenset({
    np.array, np.asarray, np.asanyarray, np.ascontiguousarray, np.sum, np.mean, np.max, np.min, np.prod, np.std, np.var,
    np.cumsum, np.argmax, np.argmin, np.any, np.all, np.median, np.sort, np.diff, np.dot, np.abs, np.sqrt, np.exp,
})  # fmt: skip
"""Functions that take a list for an array."""


@serves("lists")
def as_arrays(function: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The result of one of NumPy's functions of such a list, as one of an array: function, arguments, keywords."""
    if not any(is_grown(one) or type(one) is Later for one in (*given, *named.values())):
        return function, given, named
    if given and (type(given[0]) is Later or (type(given[0]) is Listed and given[0].counted is not None)):
        found = _masked(given[0])
        if found is not None:
            is_copy = function in (np.array, np.asarray) and len(given) == 1 and not named
            return (lambda: found, (), {}) if is_copy else (function, (found, *given[1:]), named)
        return partial(_later, function, given, named), (), {}
    if not given or not is_grown(given[0]) or any(map(is_grown, (*given[1:], *named.values()))):
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    array: Any = given[0].whole()
    axis = named.get("axis", given[1] if len(given) > 1 else 0)
    merged = array.ndim > 1 and axis == 0 and len(given) < 3 and not {*named} - {"axis"}
    if function is np.stack and len(given) < 3 and not {*named} - {"axis"} and type(axis) is int:
        return np.ascontiguousarray, (np.moveaxis(array, 0, axis),), {}
    if function is np.vstack and array.ndim == 2 and len(given) == 1 and not named:
        return np.copy, (array,), {}
    if function is np.column_stack and array.ndim == 2:
        return np.ascontiguousarray, (array.T,), {}
    is_row = array.ndim == 2 if function is np.hstack else array.ndim > 2 and function is np.vstack
    if merged and (function is np.concatenate or is_row):
        return np.reshape, (array, (-1, *array.shape[2:])), {}
    if function not in WHOLE:
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    return function, (array, *given[1:]), named


def _masked(grown: Any) -> Masked | None:
    """The numbers of a list, which derivatives hang on before it is known how many there are; None of others."""
    found, tracer = grown.counted if type(grown) is Listed else None, current()
    if found is None or tracer is None or not tracer.differentiates:
        return None
    if found.tracer.depth != found.depth or found.is_reversed or len(found.columns) != 1:
        return None
    (column,) = found.columns
    if type(found.elements.form) is not Leaf or column.dtype.kind != "f":
        return None
    return Masked(fresh(found.tracer, column.node), fresh(found.tracer, found.inside()))


def _later(function: Any, given: tuple[Any, ...], named: dict[str, Any]) -> Later:
    """An array of a list that only the running code knows the length of, made when it has run."""
    first, *others = given
    if function not in (np.array, np.asarray) or any(is_grown(one) for one in (*others, *named.values())):
        raise UnknownError(f"numpy.{function.__name__} of a list that has grown in a loop")
    of = first if type(first) is Later else Later(list, first.counted.finished())
    return Later(lambda found: function(found, *others, **named), of)
