"""Functions compiled by numba, as the Python functions that tracing enters; numba itself is never imported."""

import sys
import types
from typing import Any

DISPATCHERS = "numba.core.dispatcher"
CALLBACKS = "numba.core.ccallback"
UFUNCS = "numba.np.ufunc.dufunc"
RANGES = "numba.misc.special"


def python_function(value: Any) -> types.FunctionType | None:
    """The Python function under ``@njit``, ``@cfunc``, or ``@vectorize`` without types; None for other values."""
    dispatchers, callbacks, ufuncs = (sys.modules.get(name) for name in (DISPATCHERS, CALLBACKS, UFUNCS))
    function = None
    if dispatchers is not None and isinstance(value, dispatchers.Dispatcher):
        function = value.py_func
    elif callbacks is not None and isinstance(value, callbacks.CFunc):
        function = value.__wrapped__
    elif ufuncs is not None and isinstance(value, ufuncs.DUFunc) and not value._frozen:
        function = value._dispatcher.py_func
    return function if type(function) is types.FunctionType else None


def as_python(value: Any) -> Any:
    """The Python equivalent of a value: `range` for ``prange``, the Python function of a compiled one."""
    ranges = sys.modules.get(RANGES)
    if ranges is not None and value is ranges.prange:
        return range
    return python_function(value) or value
