"""Implementation of `__array_function__`: a registered operation, NumPy's own code traced, or a call at run time."""

import contextlib
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.iterables import RunTimeIterable
from jitkernels.compiler.capture.numpy import numpy_callouts
from jitkernels.compiler.capture.override_registry import DECOMPOSITIONS, SERVICES, TABLE, serves
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.builder import UnsupportedError

UNSUPPORTED_FUNCTIONS = {
    np.put, np.place, np.putmask, np.save, np.savez, np.savez_compressed,
    np.savetxt, np.shares_memory, np.may_share_memory, np.apply_along_axis, np.apply_over_axes, np.piecewise,
    np.extract, np.compress, np.array2string, np.array_repr,
    np.array_str, np.trim_zeros, np.intersect1d, np.union1d, np.setdiff1d,
}  # fmt: skip
"""Unsupported functions: results of data-dependent size, writes, callbacks, or decisions on values."""


@serves("function")
def call_function(tracer: Tracer, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A NumPy function with traced arguments."""
    if any(isinstance(leaf, RunTimeIterable) for leaf in pytree.leaves((arguments, keywords))):
        return SERVICES["function dynamic"](function, arguments, keywords)
    override = TABLE.get(function)
    name = getattr(function, "__name__", str(function))
    if function in UNSUPPORTED_FUNCTIONS:
        raise UnsupportedError(f"numpy.{name}")
    composed = DECOMPOSITIONS.get(function) if keywords.get("out") is None else None
    # In a loop or branch NumPy is called only where the shape of the result is known.
    is_decomposed = tracer.depth and override is None and function not in numpy_callouts.OF_KNOWN_SHAPE
    if composed is not None and (tracer.differentiates or is_decomposed):
        with contextlib.suppress(UnsupportedError):  # unsupported options use the undifferentiated path
            return composed(*arguments, **keywords)
    if override is not None:
        try:
            return override(*arguments, **keywords)
        except UnsupportedError:
            if keywords.get("out") is not None or function in TABLE_WRITES or function in OF_COMPUTED_SIZE:
                raise
        if tracer.depth and composed is not None and function not in numpy_callouts.OF_KNOWN_SHAPE:
            with contextlib.suppress(UnsupportedError):
                return composed(*arguments, **keywords)
    elif numpy_callouts.is_python(function):
        before = [
            (leaf, leaf.view.storage.node) for leaf in pytree.leaves((arguments, keywords)) if type(leaf) is Traced
        ]
        try:
            return numpy_callouts.traced_copy(function)(*arguments, **keywords)
        except (Exception, UnsupportedError):  # noqa: BLE001  # NumPy raises at run time where needed
            tracer.note(f"numpy.{name} cannot be traced")
            if any(array.view.storage.node is not node for array, node in before):
                raise UnsupportedError(f"numpy.{name}, which writes to its arguments") from None
    if keywords.get("out") is not None:
        raise UnsupportedError(f"numpy.{name} with out=")
    return numpy_callouts.call_at_run_time(tracer, function, arguments, keywords)


OF_COMPUTED_SIZE = {np.argwhere, np.flatnonzero, np.nonzero, np.unique}
"""Registered functions whose results have other sizes in the next call."""
TABLE_WRITES = {np.copyto, np.fill_diagonal}
"""Registered functions that write to their arguments."""
