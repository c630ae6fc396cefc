"""``numpy.vectorize`` in a trace: its loop over elements is compiled with the function.

1. The function gets Python's numbers, as from NumPy: divisions by zero raise, and ints do not wrap around.
2. NumPy takes the dtype of the result from that of a call with the first element, as NumPy's scalar. Functions that may
   return different types are refused.
"""

import types
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow import runtime_hooks
from jitkernels.compiler.capture.control_flow.loop_state import dtype_of
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED, stand_in
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.capture.rewrite.ast_builder import FLOW
from jitkernels.compiler.capture.rewrite.elementwise_function import elementwise_code
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.builder import UnsupportedError

numpy: Any = stand_in(np)
NATURAL = "float64", "int64", "complex128"
"""Dtypes whose scalars give results of the same dtypes as Python's numbers do."""


class VectorizedFunction:
    """What ``numpy.vectorize`` returns for a function, without options but one dtype of floats in `otypes`."""

    def __init__(self, pyfunc: Callable[..., Any], otypes: Any = None, *rest: Any, **options: Any) -> None:
        given = [name for name, value in options.items() if value not in (None, False) and name != "doc"]
        if rest or given:
            raise UnsupportedError(f"numpy.vectorize with {given[0] if given else 'more arguments than otypes'}")
        self.function, self.dtype = pyfunc, _dtype_of(otypes)

    def __call__(self, *arrays: Any, **keywords: Any) -> Any:
        tracer = current()
        if tracer is None or keywords or not any(type(array) is Traced for array in arrays):
            raise UnsupportedError("numpy.vectorize called with keywords or without arrays")
        arrays = tuple(
            SERVICES["constants"](tracer, np.asarray(one)) if type(one) is not Traced else one for one in arrays
        )
        before = len(tracer.joined_kinds)
        if any(array.is_scalar and not array.is_weak and str(array.dtype) not in NATURAL for array in arrays):
            raise UnsupportedError("numpy.vectorize of a number that is none of Python's")  # which NumPy passes on
        names = {FLOW: runtime_hooks, "np": numpy, "function": self.function, "cast": _cast}
        by_scalar = self.dtype is None and any(str(array.dtype) not in NATURAL for array in arrays)
        result = types.FunctionType(elementwise_code(len(arrays), by_scalar=by_scalar), names)(*arrays)
        if self.dtype is not None:
            return result.astype(self.dtype)
        if any(dtype_of(first) != dtype_of(other) for first, other in tracer.joined_kinds[before:]):
            raise UnsupportedError("numpy.vectorize of a function that returns numbers of several types")
        if not by_scalar and str(result.dtype) not in (*NATURAL, "bool"):  # for NumPy's scalars it may be another
            raise UnsupportedError("numpy.vectorize of a function that returns NumPy's numbers")
        return result


def _cast(result: Any, dtype: np.dtype[Any]) -> Any:
    """The results as an array of the dtype. NumPy raises OverflowError for Python's ints that it does not hold."""
    tracer = current()
    if tracer is not None and dtype.kind in "iu" and result.dtype == "int64" and not np.can_cast("int64", dtype):
        limits = np.iinfo(dtype)
        is_outside = result < limits.min
        if limits.max < np.iinfo("int64").max:
            is_outside = is_outside | (result > limits.max)
        tracer.checks.append(numpy.any(is_outside).node)
    return result.astype(dtype)


def _dtype_of(otypes: Any) -> np.dtype[Any] | None:
    """The dtype of the result; None for that of the first element."""
    if not otypes:
        return None
    dtypes: list[np.dtype[Any]] = [np.dtype(one) for one in otypes]
    if len(dtypes) != 1 or dtypes[0].kind != "f":
        raise UnsupportedError("numpy.vectorize with otypes other than one dtype of floats")
    return dtypes[0]


CALLED[np.vectorize] = VectorizedFunction
SERVICES["vectorize"] = VectorizedFunction
