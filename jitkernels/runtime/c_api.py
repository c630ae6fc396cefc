"""External symbols of code called from Python: functions of CPython, NumPy and libc, and objects to compare with."""

import ctypes
import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import External
from jitkernels.core.c_symbols import symbol_address

NUMPY_API = {
    "PyArray_CheckFromAny": 108, "PyArray_Empty": 184, "PyArray_NewFromDescr": 94, "PyArray_Return": 76,
    "PyArray_DescrFromType": 45, "PyArray_CopyInto": 50, "PyArray_Scalar": 60,
}  # fmt: skip
"""Indices in NumPy's table of C functions."""
C_API = (
    "Py_IncRef", "Py_DecRef", "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread", "PyErr_Clear",
    "PyErr_Fetch", "PyErr_Restore",
    "PyErr_Occurred", "PyErr_SetObject", "PyNumber_Float", "PyLong_AsLong", "PyLong_FromLong", "PyTuple_New",
    "PyFloat_FromDouble", "PyComplex_FromDoubles",
    "PyBool_FromLong", "PyList_New", "PyDict_New", "PyDict_SetItem", "PyType_GenericAlloc",
    "PyObject_GenericSetAttr",
    "PyDict_GetItemWithError", "PyDict_Next", "PyObject_GetAttr", "PyObject_RichCompareBool", "PyContextVar_Get",
)  # fmt: skip
SIGNALS = (
    "PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyThread_get_thread_ident",
)  # fmt: skip
"""Functions for signal polling in long loops."""
CALLING = (
    "PyGILState_Ensure", "PyGILState_Release", "PyErr_ExceptionMatches", "PyErr_Fetch", "PyErr_Restore",
    "PySequence_GetItem", "PyContextVar_Set", "PyContextVar_Reset",
)  # fmt: skip
"""Further functions for calls from compiled code into Python."""
METHOD = "_PyObject_GetMethod"
"""CPython's method lookup; not exported by every version."""
OPTIONAL_ATTRIBUTE = next(
    (name for name in ("PyObject_GetOptionalAttr", "_PyObject_LookupAttr") if hasattr(ctypes.pythonapi, name)), ""
)
"""CPython's attribute lookup that raises nothing for a missing one; the private name until version 3.13."""
LIBC = ("malloc", "free")
OBJECTS: dict[str, object] = {
    "jk_ndarray": np.ndarray, "jk_none": None, "jk_float": float, "jk_int": int, "jk_bool": bool, "jk_tuple": tuple,
    "jk_list": list, "jk_str": str,
    "jk_float32_type": np.float32,
    "jk_float64_type": np.float64, "jk_float32": np.dtype(np.float32), "jk_float64": np.dtype(np.float64),
    "jk_int8": np.dtype(np.int8), "jk_uint8": np.dtype(np.uint8), "jk_int32": np.dtype(np.int32),
    "jk_int64": np.dtype(np.int64), "jk_uint64": np.dtype(np.uint64),
}  # fmt: skip
"""Objects that translated code compares with, by symbol."""
SCALARS = tuple(np.dtype(code) for code in "?bBhHiIlLqQfde")
"""NumPy scalar types, without subclasses, whose values the dispatcher loads in place."""
_scalars = np.array([len(SCALARS), *(w for d in SCALARS for w in (id(d.type), d.num, d.itemsize))], np.int64)

_derived: list[type] = [np.memmap] * 4
_derived_ids = np.array([*map(id, _derived)], np.int64)


def accept_subclass(kind: type) -> None:
    """Let the dispatcher accept a subclass of ndarray as ndarrays; it remembers the last few."""
    if kind not in _derived:
        known = [_derived[0], kind, *_derived[1:-1]]
        _derived_ids[:] = [*map(id, known)]
        _derived[:] = known  # last: an evicted type must not be freed while its id is in the table


_bfloat16 = np.zeros(1, np.int64)
_known: "list[np.dtype[Any]]" = []


def accept_bfloat16(dtype: "np.dtype[Any]") -> None:
    """Let the dispatcher accept another package's bfloat16 dtype; only the last one is accepted."""
    if int(_bfloat16[0]) != id(dtype):
        _known.append(dtype)
        _bfloat16[0] = id(dtype)


def numpy_function(name: str) -> int:
    """The address of a function of NumPy's C API."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]  # NumPy's stubs leave it out

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(_multiarray_umath._ARRAY_API, None)
    return ctypes.c_int64.from_address(table + 8 * NUMPY_API[name]).value


def _c_api(name: str) -> Callable[[], int]:
    return partial(symbol_address, name, ctypes.pythonapi)


def _has(name: str) -> bool:
    return bool(name) and hasattr(ctypes.pythonapi, name)


@functools.cache
def externals() -> tuple[External, ...]:
    """The functions and objects that all code called from Python links to."""
    return (
        *(link(name, _c_api(name)) for name in (*C_API, METHOD, OPTIONAL_ATTRIBUTE) if _has(name)),
        *(link(name, partial(symbol_address, name)) for name in LIBC),
        *(link(name, partial(numpy_function, name)) for name in NUMPY_API),
        *(link(name, partial(id, value)) for name, value in OBJECTS.items()),
        link("jk_scalars", lambda: _scalars.ctypes.data),
        link("jk_derived", lambda: _derived_ids.ctypes.data),
        link("jk_bfloat16", lambda: _bfloat16.ctypes.data),
    )


def signals() -> tuple[External, ...]:
    """The functions that code with long loops links to."""
    return tuple(link(name, _c_api(name)) for name in SIGNALS)


def calling() -> tuple[External, ...]:
    """The functions that code which calls Python links to."""
    return tuple(link(name, _c_api(name)) for name in CALLING)


def link(name: str, address: Callable[[], int]) -> External:
    """A function or object of the interpreter, by its symbol in code."""
    return External(name, "void", (), address)
