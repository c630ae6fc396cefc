"""Functions of numba's ``@intrinsic``, which have no Python code: numba compiles them to native functions."""

from collections.abc import Callable
from typing import Any

from jitkernels.compiler.capture.native.native_functions import NativeFunction, numba_dtype
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.runtime.native_signature import NativeSignature

MAX_COMPILED = 64
"""Compiled intrinsics that are kept."""
_compiled: dict[tuple[Any, tuple[str, ...]], NativeFunction] = {}


def compiled_intrinsic(intrinsic: Any, dtypes: tuple[str, ...]) -> NativeFunction:
    """The native function for arguments of some dtypes. Raises UnsupportedError where numba has none of numbers."""
    key = intrinsic, dtypes
    if key not in _compiled:
        if len(_compiled) >= MAX_COMPILED:
            _compiled.clear()  # code that calls them keeps them alive
        _compiled[key] = _compile(intrinsic, dtypes)
    return _compiled[key]


def _compile(intrinsic: Any, dtypes: tuple[str, ...]) -> NativeFunction:
    import numba

    name, wrapper = intrinsic._name, _wrapper(intrinsic, len(dtypes))
    kinds = tuple(getattr(numba.types, "boolean" if dtype == "bool" else dtype) for dtype in dtypes)
    try:
        dispatcher = numba.njit(wrapper)
        dispatcher.compile(kinds)
        result = dispatcher.overloads[kinds].signature.return_type
        dtype = "" if result == numba.types.none else numba_dtype(name, result)
        function = numba.cfunc(result(*kinds))(wrapper)
    except (numba.core.errors.NumbaError, NotImplementedError) as error:
        text = str(error).strip().splitlines()[-1]
        raise UnsupportedError(f"the numba intrinsic {name!r} of {', '.join(dtypes)}: {text}") from error
    return NativeFunction(name, function.address, NativeSignature(dtypes, dtype), function, is_python=False)


def _wrapper(intrinsic: Any, count: int) -> Callable[..., Any]:
    """A function of so many parameters, which numba has to know by number."""
    match count:
        case 0:
            return lambda: intrinsic()
        case 1:
            return lambda a: intrinsic(a)
        case 2:
            return lambda a, b: intrinsic(a, b)
        case 3:
            return lambda a, b, c: intrinsic(a, b, c)
        case 4:
            return lambda a, b, c, d: intrinsic(a, b, c, d)
    raise UnsupportedError(f"a numba intrinsic of {count} arguments: expected at most 4")
