"""Objects of pandas as arguments of elementwise functions: compiled code computes their elements.

pandas means other things than NumPy by most functions: its reductions skip NaN, its indexing goes by label, its
operators align rows. So code serves a function only if its graph is elementwise and all objects have the same labels.
The type, name and dtype of the result are those of the function on objects without rows.
"""

import sys
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import names_of
from jitkernels.compiler.capture.pytree.result_spec import ResultInputs
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.runtime import errstate

OTHERWISE_DEFINED = frozenset({"floor_divide", "remainder", "fmod", "divmod"})
"""Operations that pandas defines otherwise where the divisor is 0."""
NEGLIGIBLE = frozenset({"input", "constant", "extent", "cast"})
TYPE_TESTS = frozenset({"isinstance", "type", "hasattr", "getattr", "callable"})
"""Builtins by which a function may tell pandas' objects from arrays."""


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result for Series and DataFrames; NotImplemented where the plain function is to run.

    The plain function also runs again where NumPy would warn of floating-point errors, which pandas may ignore.
    """
    code = getattr(function.__wrapped__, "__code__", None)
    if code is None or TYPE_TESTS.intersection(names_of(code).names):
        return NotImplemented
    labelled = [value for value in (*args, *kwargs.values()) if _is_labelled(value)]
    elements = {id(value): _elements_of(value) for value in labelled}
    if not labelled or not all(one is not None for one in elements.values()) or not _are_aligned(labelled):
        return NotImplemented

    def each(convert: Any) -> tuple[Any, Any]:
        named = {name: convert(value) if _is_labelled(value) else value for name, value in kwargs.items()}
        return [convert(value) if _is_labelled(value) else value for value in args], named

    positional, named = each(lambda value: elements[id(value)])
    if any(type(value) is np.ndarray and id(value) not in map(id, elements.values()) for value in positional):
        return NotImplemented
    specialization, flat, symbols = function.look_up(tuple(positional), named)
    if specialization is None or specialization.graph is None or not _is_elementwise(specialization.graph):
        return NotImplemented
    try:
        positional, named = each(lambda value: value.iloc[:0])
        empty = function.__wrapped__(*positional, **named)
    except Exception:  # noqa: BLE001  # the plain function does what is right
        return NotImplemented
    flags = errstate.FlagCollector()
    with flags.collecting():
        arrays = specialization.run(flat.leaves, symbols)
    result = specialization.plan.make(ResultInputs(flat.leaves, arrays, symbols))
    if flags.kinds or type(result) is not np.ndarray or result.shape != labelled[0].shape:
        return NotImplemented
    return _labelled(result, empty, labelled[0])


def _is_labelled(value: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and type(value) in (pandas.Series, pandas.DataFrame)


def _elements_of(value: Any) -> Any:
    """The elements without a copy; None where they are not one array of NumPy."""
    is_frame = value.ndim == 2
    dtypes = set(value.dtypes) if is_frame else {value.dtype}
    if len(dtypes) != 1 or not isinstance(dtype := dtypes.pop(), np.dtype) or not is_known(dtype):
        return None
    array = value.to_numpy()
    if is_frame and not np.shares_memory(array, value.iloc[:, 0].to_numpy()):
        return None  # columns of several blocks: a copy
    return array if type(array) is np.ndarray else None


def _are_aligned(labelled: list[Any]) -> bool:
    """Whether all objects are of one type and have the same labels, so that pandas aligns nothing."""
    first = labelled[0]
    return all(
        type(one) is type(first) and all(axis.equals(other) for axis, other in zip(one.axes, first.axes, strict=True))
        for one in labelled[1:]
    )


def _is_elementwise(graph: Graph) -> bool:
    """Whether each element of the result depends on the elements with its index alone."""
    operations = {node.operation for node in graph}
    known = all(operation in NEGLIGIBLE or OPERATIONS[operation].is_elementwise for operation in operations)
    return known and not graph.writes and not operations & OTHERWISE_DEFINED


def _labelled(result: Any, empty: Any, like: Any) -> Any:
    """A result with the labels that pandas gives it; as an array where pandas gives one."""
    if type(empty) is np.ndarray and empty.dtype == result.dtype:
        return result
    if not _is_labelled(empty) or type(empty) is not type(like):
        return NotImplemented
    if like.ndim == 1:
        if empty.dtype != result.dtype:
            return NotImplemented
        return type(empty)(result, index=like.index, name=empty.name, copy=False)
    if any(dtype != result.dtype for dtype in empty.dtypes) or not empty.columns.equals(like.columns):
        return NotImplemented
    return type(empty)(result, index=like.index, columns=empty.columns, copy=False)
