"""cffi functions and buffers as values, without importing cffi before the program has.

A C function with the C signature of a schema is an implementation of it; cffi memory of known type and length is an
array.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.core import dtypes
from jitkernels.errors import ArgumentTypeError

BACKEND = "_cffi_backend"
RESULTS = ("void", "int32", "int64")
"""Return types of a C implementation: none, or a status that is 0 or an error code."""


def _backend() -> Any:
    """The module that defines all cffi values, or None while no module has imported cffi."""
    return sys.modules.get(BACKEND)


def is_value(value: object) -> bool:
    """Whether `value` is cffi memory, a cffi pointer or a cffi function (``ffi.CData``)."""
    backend = _backend()
    return backend is not None and isinstance(value, backend.FFI.CData)


def _type_of(value: Any) -> Any:
    return _backend().FFI().typeof(value)


def pointer_of(value: Any) -> Any:
    """A function of a library that cffi compiled (a built-in method of ``lib``) as a pointer; all else unchanged."""
    backend = _backend()
    library = getattr(value, "__self__", None)
    if backend is None or not isinstance(library, backend.Lib):
        return value
    return backend.FFI().addressof(library, value.__name__)


def is_function(value: object) -> bool:
    """Whether `value` is a pointer to a C function, such as ``lib.name`` of an opened library."""
    return is_value(value) and _type_of(value).kind == "function"


def prototype_of(function: Any) -> tuple[str, tuple[str, ...]]:
    """Result and argument types of a C function, as C types of `jitkernels.core.dtypes`."""
    kind = _type_of(function)
    return _name(kind.result), tuple(map(_name, kind.args))


def _name(kind: Any) -> str:
    """A cffi type as a C type of `jitkernels.core.dtypes` (NumPy's element names), else cffi's own name."""
    if kind.kind == "pointer":
        return f"{_name(kind.item)}*"
    name = {"float": "float32", "double": "float64", "_Bool": "bool"}.get(kind.cname)
    if name is None and kind.kind == "primitive" and kind.cname != "char":
        ffi = _backend().FFI()
        try:
            signed = int(ffi.cast(kind, -1)) < 0
        except TypeError:  # a complex number
            return str(kind.cname)
        name = f"{'' if signed else 'u'}int{8 * ffi.sizeof(kind)}"
    return name if name in dtypes.TABLE else str(kind.cname)


def reason_against(function: Any, expected: Sequence[str]) -> str | None:
    """Why a C function cannot be called with arguments of the C types `expected`, or None.

    Pointers may be ``void *``. The function returns nothing, or a status as ``int`` or ``int64_t``.
    """
    result, actual = prototype_of(function)
    declared = [_plain(text) for text in expected]
    fits = len(actual) == len(declared) and all(
        mine == other or (mine == "void*" and other.endswith("*")) for mine, other in zip(actual, declared, strict=True)
    )
    if fits and result in RESULTS and not _type_of(function).ellipsis:
        return None
    return f"expected int64(*)({', '.join(declared)}), got {result}(*)({', '.join(actual)})"


def _plain(text: str) -> str:
    """An argument of a schema's C signature as a name that `_name` returns; bfloat16 is ``uint16_t``."""
    kind = dtypes.c_type(text)
    element = kind.element.storage if kind.element else "void"
    return f"{element}*" if kind.is_pointer else element


def array_of(kernel: str, name: str, value: Any) -> Any:
    """Cffi memory as a NumPy array that shares it; any other value is returned unchanged.

    A C array (``ffi.new("float[3][4]")``) keeps its element type and shape; ``ffi.buffer(...)`` becomes bytes. Raises
    ArgumentTypeError for a pointer, whose length is unknown, and for element types that NumPy lacks.
    """
    backend = _backend()
    if backend is None or not isinstance(value, backend.FFI.CData | backend.FFI.buffer):
        return value
    if isinstance(value, backend.FFI.buffer):
        return np.frombuffer(value, np.uint8)
    ffi, kind, shape = backend.FFI(), _type_of(value), []
    element = kind
    while element.kind == "array":
        shape.append(len(value) if element is kind else element.length)
        element = element.item
    dtype = dtypes.TABLE.get(_name(element))
    if not shape or dtype is None or None in shape:
        raise ArgumentTypeError(
            f"{kernel}: {name}: expected an array, such as ffi.new('float[8]'), got <cdata {kind.cname!r}>"
        )
    if 0 in shape:
        return np.empty(shape, dtype.numpy)
    return np.frombuffer(ffi.buffer(value), dtype.numpy).reshape(shape)


def has_memory(values: Sequence[object]) -> bool:
    """Whether any argument is cffi memory, or a tuple that contains some."""
    backend = _backend()
    if backend is None:
        return False
    kinds = (backend.FFI.CData, backend.FFI.buffer)
    return any(isinstance(v, kinds) or (type(v) is tuple and has_memory(v)) for v in values)


def arrays_of(kernel: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call with cffi memory replaced by arrays, also inside a tuple passed as ``out``."""

    def converted(name: str, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(array_of(kernel, name, item) for item in value)
        return array_of(kernel, name, value)

    return (
        [converted(f"argument {i}", value) for i, value in enumerate(arguments, 1)],
        {name: converted(name, value) for name, value in named.items()},
    )
