"""Implementations that numba compiles: a Python function of arrays gets a C entry of its schema's signature.

numba is imported when one is built. The entry lives in this process: every process builds it again.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from jitkernels.attrs.schema.base import KernelAttr
from jitkernels.core import dtypes
from jitkernels.errors import BuildError, RegistrationError
from jitkernels.runtime.cffi_library import function_at

FAILED = -(1 << 20)
"""The status of a function that raised: no schema defines it."""
_alive: list[Any] = []
"""Compiled numba code whose addresses kernels hold for the lifetime of the process."""


def implementation_of(
    attr_class: type[KernelAttr], function: Any
) -> tuple[Callable[[KernelAttr], Any], Callable[[KernelAttr], str | None]]:
    """The factory of the C function for an attr, and the reason why some attrs have none.

    `function` takes the arrays of the kernel (inputs, then outputs) in their declared shapes, then any integers and
    floats of the schema, by name. A ``@cfunc`` of the schema's C signature is called at its address. Raises
    RegistrationError for an object that is not callable.
    """
    if not callable(function) and not hasattr(function, "address"):
        raise RegistrationError(
            f"@implements({attr_class.__name__}, compiler='numba'): expected a function, got {function!r}"
        )

    def factory(attr: KernelAttr) -> Any:
        declared = {argument.name: argument for argument in attr_class.arrays}
        extents = [declared[array.name].extents for array in attr.signature().arrays]
        shapes = tuple("(" + "".join(f"{extent}, " for extent in listed) + ")" for listed in extents)
        return _entry(attr_class, function, attr.signature().c_arguments, shapes)  # type: ignore[arg-type]  # a class

    factory.__module__ = getattr(function, "__module__", __name__)
    return factory, _reason_against


def _reason_against(attr: KernelAttr) -> str | None:
    """Why there is no C entry for an attr, or None."""
    fields = attr.fields()
    transposed = [a.name for a in type(attr).arrays if a.transposed and fields[a.transposed]]
    if transposed:
        return f"numba's functions do not support a transposed {', '.join(transposed)}"
    unknown = {array.dtype for array in attr.signature().arrays} & {"float16", "bfloat16"}
    return f"numba has no {', '.join(sorted(unknown))}" if unknown else None


@functools.cache
def _entry(attr_class: type[KernelAttr], function: Any, arguments: tuple[str, ...], shapes: tuple[str, ...]) -> Any:
    """The C function of the schema's signature that calls `function`, as a cffi function.

    `shapes` are the declared shapes of the arrays as Python text, in the names of the schema's integers.
    """
    try:
        import numba
    except ImportError as error:
        raise BuildError(f"{attr_class.__name__}: compiler 'numba': {error}") from error
    kinds = [_type_of(text) for text in arguments]
    label = f"@implements({attr_class.__name__}, compiler='numba')"
    if hasattr(function, "address") and hasattr(function, "native_name"):
        declared = tuple(function._sig.args)
        if declared != tuple(kinds) or function._sig.return_type != numba.types.int64:
            raise RegistrationError(f"{label}: expected int64({', '.join(map(str, kinds))}), got {function._sig}")
        compiled = function
    else:
        python_function = getattr(function, "py_func", function)
        text = _entry_text(label, attr_class, python_function, shapes)
        dispatcher = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)
        scope = {"function": dispatcher, "carray": numba.carray}
        exec(text, scope)  # contains only names of the schema
        try:
            compiled = numba.cfunc(numba.types.int64(*kinds))(scope["entry"])
        except numba.core.errors.NumbaError as error:
            raise BuildError(f"{label}: numba rejects {python_function.__qualname__}: {error}") from error
    parameters = ", ".join(dtypes.c_type(text).declare("").replace("restrict", "").strip() for text in arguments)
    pointer = function_at(compiled.address, f"int64_t(*)({parameters})")
    _alive.append((pointer, compiled))
    return pointer


def _entry_text(label: str, attr_class: type[KernelAttr], python_function: Any, shapes: tuple[str, ...]) -> str:
    """The Python text of the entry: arrays of the pointers, and a status where the function raises."""
    count = len(shapes)
    integers = [name for name, field in attr_class.known_fields().items() if field.is_integer]
    floats = [*attr_class.floats]
    parameters = [*inspect.signature(python_function).parameters]
    unknown = [name for name in parameters[count:] if name not in (*integers, *floats)]
    if len(parameters) < count or unknown:
        known = ", ".join([*integers, *floats])
        raise RegistrationError(
            f"{label}: expected {count} arrays and then any of {known}, got the parameters ({', '.join(parameters)})"
        )
    pointers = [f"array{i}" for i in range(count)]
    passed = [f"carray({pointer}, {shape})" for pointer, shape in zip(pointers, shapes, strict=True)]
    passed += [f"float_{name}[0]" if name in floats else name for name in parameters[count:]]
    return (
        f"def entry({', '.join([*pointers, *integers, *(f'float_{name}' for name in floats)])}):\n"
        f"    try:\n        function({', '.join(passed)})\n"
        f"    except Exception:\n        return {FAILED}\n    return 0\n"
    )


def _type_of(text: str) -> Any:
    """numba's type of a C argument."""
    import numba.core.types

    types: Any = numba.core.types
    kind = dtypes.c_type(text)
    element = getattr(types, {"bool": "boolean"}.get(kind.element.name, kind.element.name)) if kind.element else None
    return types.CPointer(element) if kind.is_pointer else element
