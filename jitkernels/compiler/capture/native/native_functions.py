"""Recognize native functions: their addresses and C signatures, read from the objects of ctypes, cffi and numba.

numba compiles calls of these as they are; Python itself cannot call all of them. None of the libraries is imported
here: a value of theirs exists only where the user's program has imported them.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.core.frozen_dataclass import frozen_dataclass
from jitkernels.runtime.native_signature import CTYPES, NativeSignature

CFFI, NUMBA_ADDRESSES, NUMBA_EXTENDING = "_cffi_backend", "numba.core.types.function_type", "numba.core.extending"
CFFI_LIBRARY = "FFILibrary"
"""What the names of the types of libraries begin with that ``ffi.dlopen`` opens; each library has its own."""
REFUSED_FLAGS = 4 | 8 | 16
"""Functions of ctypes that need the GIL (`PyDLL`), or that exchange ``errno`` or the last error of Windows."""
UNSIGNED = frozenset({"size_t", "uintptr_t"})
NUMBERS_ONLY = "expected functions of bools, ints and floats of at most 64 bits, with as many parameters as declared"


@frozen_dataclass
class NativeFunction:
    """A native function. `owner` keeps its code alive. `checks_ints`: ints beyond a parameter's type are an error.

    `is_python`: Python can call it, too, so that results are Python's numbers; otherwise they are NumPy's scalars,
    except for float64, int64 and bool.
    """

    name: str
    address: int
    signature: NativeSignature
    owner: Any
    is_python: bool = True
    checks_ints: bool = False


def is_native(value: Any) -> bool:
    """Whether a value is a native function, a library of such functions, or an intrinsic of numba."""
    return _reader(value) is not None or is_library(value) or is_intrinsic(value)


def is_library(value: Any) -> bool:
    """Whether the attributes of a value are native functions."""
    if isinstance(value, ctypes.CDLL):
        return True
    backend = sys.modules.get(CFFI)
    return backend is not None and (isinstance(value, backend.Lib) or type(value).__name__.startswith(CFFI_LIBRARY))


def is_intrinsic(value: Any) -> bool:
    """Whether a value is a function of numba's ``@intrinsic``, which only numba compiles."""
    extending = sys.modules.get(NUMBA_EXTENDING)
    return extending is not None and isinstance(value, extending._Intrinsic)


def native_function(value: Any) -> NativeFunction | None:
    """The native function that a value is; None for others. Raises UnsupportedError for a signature of other types."""
    read = _reader(value)
    return None if read is None else read(value)


def _reader(value: Any) -> Callable[[Any], NativeFunction] | None:
    if isinstance(value, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return _of_ctypes
    backend = sys.modules.get(CFFI)
    if backend is not None:
        if isinstance(value, backend.FFI.CData):
            return _of_cffi if backend.FFI().typeof(value).kind == "function" else None
        if isinstance(getattr(value, "__self__", None), backend.Lib):
            return _of_cffi
    addresses = sys.modules.get(NUMBA_ADDRESSES)
    if addresses is not None and isinstance(value, addresses.WrapperAddressProtocol):
        return _of_numba
    return None


def _refused(name: str, what: str) -> UnsupportedError:
    return UnsupportedError(f"the native function {name!r} {what}: {NUMBERS_ONLY}")


def _of_ctypes(function: Any) -> NativeFunction:
    """A function of a library, or of ``ctypes.CFUNCTYPE``."""
    name = getattr(function, "__name__", "") or type(function).__name__
    if function.argtypes is None:
        raise _refused(name, "has no argtypes")
    if function._flags_ & REFUSED_FLAGS or getattr(function, "errcheck", None) is not None:
        raise _refused(name, "holds the GIL, sets errno or checks its result")
    kinds = [_dtype_of_ctype(name, kind) for kind in function.argtypes]
    result = "" if function.restype is None else _dtype_of_ctype(name, function.restype)
    address = ctypes.cast(function, ctypes.c_void_p).value
    if not address:
        raise _refused(name, "has no address")
    return NativeFunction(name, address, NativeSignature(tuple(kinds), result), function)


def _dtype_of_ctype(name: str, kind: Any) -> str:
    found = next((dtype for dtype, known in CTYPES.items() if kind is known), "")
    if not found and kind in (ctypes.c_long, ctypes.c_ulong, ctypes.c_longlong, ctypes.c_ulonglong):
        found = np.dtype(kind).name
    if not found:
        raise _refused(name, f"has a parameter or result of type {getattr(kind, '__name__', kind)}")
    return found


def _of_cffi(function: Any) -> NativeFunction:
    """A function of a library, or a pointer to one."""
    ffi = sys.modules[CFFI].FFI()
    kind = ffi.typeof(function)
    owner = getattr(function, "__self__", None)
    name = function.__name__ if owner is not None else kind.cname
    if kind.ellipsis:
        raise _refused(name, "has a variable number of arguments")
    kinds = tuple(_dtype_of_cffi(ffi, name, one) for one in kind.args)
    result = "" if kind.result.kind == "void" else _dtype_of_cffi(ffi, name, kind.result)
    pointer = function if owner is None else ffi.addressof(owner, name)
    address = int(ffi.cast("uintptr_t", pointer))
    return NativeFunction(name, address, NativeSignature(kinds, result), function, checks_ints=True)


def _dtype_of_cffi(ffi: Any, name: str, kind: Any) -> str:
    text = kind.cname
    if kind.kind == "primitive" and "char" not in text.split() and "complex" not in text.lower():
        bits = 8 * ffi.sizeof(kind)
        is_float = text in ("float", "double")
        if text in ("_Bool", "bool"):
            return "bool"
        if is_float or "double" not in text:
            sign = "u" if text.startswith("u") or text in UNSIGNED else ""
            found = f"float{bits}" if is_float else f"{sign}int{bits}"
            if found in CTYPES:
                return found
    if kind.kind == "primitive" and text in ("signed char", "unsigned char"):
        return "uint8" if text.startswith("u") else "int8"
    raise _refused(name, f"has a parameter or result of type {text}")


def _of_numba(function: Any) -> NativeFunction:
    """An object with an address for numba, ``numba.types.WrapperAddressProtocol``."""
    signature = function.signature()
    name = type(function).__name__
    kinds = [numba_dtype(name, one) for one in signature.args]
    result = "" if str(signature.return_type) == "none" else numba_dtype(name, signature.return_type)
    native = NativeSignature(tuple(kinds), result)
    return NativeFunction(name, int(function.__wrapper_address__()), native, function, is_python=False)


def numba_dtype(name: str, kind: Any) -> str:
    """The dtype of a type of numba. Raises UnsupportedError for others than numbers."""
    found = str(kind)
    if found not in CTYPES:
        raise _refused(name, f"has a parameter or result of type {found}")
    return found
