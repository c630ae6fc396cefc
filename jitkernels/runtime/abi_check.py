"""Verify CPython's and NumPy's object layouts at start, by the objects' own answers."""

import ctypes
import functools
import sys
from typing import Any

import numpy as np

from jitkernels.runtime import c_api
from jitkernels.runtime.abi_layout import ALIGNED, CONTIGUOUS, NATIVE, NOT_SWAPPED, WRITEABLE, Offset


def word_at(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


def _layout_is_known() -> bool:
    """Return whether arrays, tuples and numbers have the layout that compiled code assumes."""
    sample = np.zeros((3, 5), np.float32)
    sample.flags.writeable = False
    extents = word_at(id(sample) + Offset.ARRAY_EXTENTS)
    strides = word_at(id(sample) + Offset.ARRAY_STRIDES)
    number = 2.5
    items = [number]
    flags = ctypes.c_int32.from_address(id(sample) + Offset.ARRAY_FLAGS).value
    pair = ("out", "in")
    references = ctypes.c_uint32.from_address(id(sample) + Offset.REFERENCES)
    before, again = references.value, sample
    return (
        (again is sample and references.value == before + 1)
        and word_at(id(sample) + Offset.TYPE) == id(np.ndarray)
        and word_at(id(sample) + Offset.ARRAY_DATA) == sample.ctypes.data
        and ctypes.c_int32.from_address(id(sample) + Offset.ARRAY_DIMENSIONS).value == 2
        and (word_at(extents), word_at(extents + 8)) == (3, 5)
        and word_at(id(sample) + Offset.ARRAY_DTYPE) == id(np.dtype(np.float32))
        and flags & (ALIGNED | CONTIGUOUS | WRITEABLE) == ALIGNED | CONTIGUOUS
        and word_at(id(pair) + Offset.TUPLE_SIZE) == 2
        and word_at(id(pair) + Offset.TUPLE_ITEMS) == id(pair[0])
        and (word_at(strides), word_at(strides + 8)) == (20, 4)
        and ctypes.c_double.from_address(id(number) + Offset.FLOAT_VALUE).value == number
        and word_at(word_at(id(items) + Offset.LIST_ITEMS)) == id(number)
        and word_at(id(items) + Offset.TUPLE_SIZE) == 1
        and all(_number_is_known(dtype.type(1)) for dtype in c_api.SCALARS)
        and all(_dtype_is_known(np.dtype(name)) for name in ("float32", "int64", "float16", "bool"))
    )


def _number_is_known(number: "np.generic") -> bool:
    """Return whether a NumPy scalar holds its value where compiled code loads it."""
    value = ctypes.string_at(id(number) + Offset.FLOAT_VALUE, number.itemsize)
    return bool(value == number.tobytes())


def _dtype_is_known(dtype: "np.dtype[Any]") -> bool:
    """Return whether a dtype object has the layout that compiled code assumes."""
    return (
        ctypes.c_int32.from_address(id(dtype) + Offset.DTYPE_NUMBER).value == dtype.num
        and ctypes.c_char.from_address(id(dtype) + Offset.DTYPE_ORDER).value == dtype.byteorder.encode()
        and word_at(id(dtype) + Offset.DTYPE_BYTES) == dtype.itemsize
        and dtype.byteorder in (chr(NATIVE), "|")
    )


def _empty_works(address: int) -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int
    )(address)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(np.dtype(np.float64)))
    array = make(2, (ctypes.c_int64 * 2)(3, 5), id(np.dtype(np.float64)), 0)
    return isinstance(array, np.ndarray) and array.shape == (3, 5) and array.dtype == np.float64


def _new_works(address: int) -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_int, *[ctypes.POINTER(ctypes.c_int64)] * 2,
        ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    )(address)  # fmt: skip
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(np.dtype(np.float64)))
    extents, steps = (ctypes.c_int64 * 3)(2, 3, 5), (ctypes.c_int64 * 3)(40, 80, 8)
    array = make(np.ndarray, id(np.dtype(np.float64)), 3, extents, steps, None, 0, None)
    return isinstance(array, np.ndarray) and array.strides == (40, 80, 8) and array.dtype == np.float64


def _from_any_works(address: int) -> bool:
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p
    )(address)
    arrays = [make(values, None, 0, 0, ALIGNED | NOT_SWAPPED, None) for values in ([[1, 2.5]], np.ones(2, ">i4"))]
    if not all(isinstance(array, np.ndarray) and array.dtype.isnative for array in arrays):
        return False
    return [array.tolist() for array in arrays] == [[[1.0, 2.5]], [1, 1]]


@functools.cache
def reason_for_python() -> str | None:
    """The reason why compiled code cannot read this Python's and NumPy's objects; None if it can."""
    if "t" in getattr(sys, "abiflags", ""):
        return "free-threaded Python has another object layout"
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return f"{sys.implementation.name} is not 64-bit CPython"
    if not _layout_is_known():
        return f"NumPy {np.__version__} on Python {sys.version.split()[0]} has another object layout"
    if not (
        _empty_works(c_api.numpy_function("PyArray_Empty"))
        and _new_works(c_api.numpy_function("PyArray_NewFromDescr"))
        and _from_any_works(c_api.numpy_function("PyArray_CheckFromAny"))
    ):
        return f"NumPy {np.__version__} has another C interface"
    return None
