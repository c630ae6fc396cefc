"""Segment reductions: ``numpy.ufunc.reduceat``, whose segments begin where indices say, as rows of CSR matrices do."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import traced
from jitkernels.compiler.capture.dynamic.dynamic_array import KnownElements
from jitkernels.compiler.capture.dynamic.dynamic_reductions import IDENTITIES
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise


@serves("ufunc.reduceat")
def reduceat(
    tracer: Tracer, ufunc: Any, array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None
) -> Any:
    """The reductions of ``array[indices[i]:indices[i + 1]]``, the last one to the end of the array.

    Where a segment is empty, its value is the element at its index. Calls with indices outside of the array bail out:
    NumPy raises IndexError. Raises UnsupportedError but for vectors of numbers, and ufuncs that reduce them.
    """
    name = f"numpy.{ufunc.__name__}.reduceat"
    values, begins = traced(tracer, array), traced(tracer, indices)
    if ufunc not in IDENTITIES or values.ndim != 1 or values.dtype.kind not in "fiu" or values.dtype == "float16":
        raise UnsupportedError(f"{name} of an array of {values.ndim} dimensions, {values.dtype}")
    if dtype is not None or out not in (None, (None,)) or axis not in (0, -1):
        raise UnsupportedError(f"{name} with options")
    if begins.ndim != 1 or begins.dtype.kind not in "iu" or begins.dtype == "uint64":
        raise UnsupportedError(f"{name} with other indices than a vector of ints")
    length = values.shape[0]
    result_dtype = ufunc.reduceat(np.ones(1, values.dtype), [0]).dtype
    ends = np.append(begins[1:], length)
    results: Any = SERVICES["zeros"](tracer, begins.shape[0], result_dtype.name)

    def reduce(index: Any) -> None:
        begin, end = begins[index], ends[index]
        for outside in (elementwise("less", begin.node, 0), np.greater_equal(begin, length).node):
            tracer.checks.append(outside)
        results[index] = ufunc.reduce(values[begin : np.maximum(end, begin + 1)])

    KnownElements(begins).each(reduce)
    return results
