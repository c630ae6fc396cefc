"""Functions compiled by numba, as the Python functions that tracing enters; numba itself is never imported."""

import sys
import types
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.rewrite.stencil_function import stencil_function
from jitkernels.compiler.ir.builder import UnsupportedError

DISPATCHERS = "numba.core.dispatcher"
CALLBACKS = "numba.core.ccallback"
UFUNCS = "numba.np.ufunc.dufunc"
GUFUNCS = "numba.np.ufunc.gufunc"
STENCILS = "numba.stencils.stencil"
TYPES = "numba.core.types"
RANGES = "numba.misc.special"


def python_function(value: Any) -> types.FunctionType | None:
    """The Python function under ``@njit``, ``@cfunc``, ``@stencil``, or ``@vectorize`` without types; else None."""
    dispatchers, callbacks, ufuncs = (sys.modules.get(name) for name in (DISPATCHERS, CALLBACKS, UFUNCS))
    stencils = sys.modules.get(STENCILS)
    function = None
    if dispatchers is not None and isinstance(value, dispatchers.Dispatcher):
        function = value.py_func
    elif callbacks is not None and isinstance(value, callbacks.CFunc):
        function = value.__wrapped__
    elif ufuncs is not None and isinstance(value, ufuncs.DUFunc) and not value._frozen:
        function = value._dispatcher.py_func
    elif stencils is not None and isinstance(value, stencils.StencilFunc):
        function = stencil_function(value)
    return function if type(function) is types.FunctionType else None


class UfuncSource(NamedTuple):
    """What a universal function was made of: a function of elements, or, with a `layout`, of rows.

    `types`: its loops, as in `numpy.ufunc.types`, if these were declared.
    """

    function: types.FunctionType
    layout: str
    types: tuple[str, ...]


def ufunc_source(value: Any) -> UfuncSource | None:
    """The source of a function under ``@vectorize`` or ``@guvectorize``, of numba or our own; None for other values."""
    own = getattr(type(value), "__jitkernels_ufunc__", None)
    if own is not None:
        source: UfuncSource = own(value)
        return source
    ufuncs, generalized = (sys.modules.get(name) for name in (UFUNCS, GUFUNCS))
    if ufuncs is not None and isinstance(value, ufuncs.DUFunc):
        function = value._dispatcher.py_func
        return UfuncSource(function, "", tuple(value.types) if value._frozen else ())
    if generalized is not None and isinstance(value, generalized.GUFunc):
        loops = () if value.is_dynamic else tuple(value.types)  # calls without types have their outputs as arguments
        return UfuncSource(value.gufunc_builder.py_func, value.signature, loops)
    return None


def refuse_stencil(value: Any) -> None:
    """Raise UnsupportedError for a stencil that has no Python function."""
    stencils = sys.modules.get(STENCILS)
    if stencils is not None and isinstance(value, stencils.StencilFunc):
        raise UnsupportedError("a numba stencil of slices, of free variables, or without a constant neighborhood")


def as_python(value: Any) -> Any:
    """The Python equivalent of a value: `range` for ``prange``, the Python function of a compiled one.

    Types of numba are those of NumPy's scalars, as dtypes and as functions.
    """
    ranges = sys.modules.get(RANGES)
    if ranges is not None and value is ranges.prange:
        return range
    kinds = sys.modules.get(TYPES)
    if kinds is not None and isinstance(value, kinds.Number | kinds.Boolean):
        return getattr(np, str(value), value)
    return python_function(value) or value
