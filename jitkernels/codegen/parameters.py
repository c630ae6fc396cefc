"""Bind the C arguments of a kernel to the parameters of its Python functions, by name.

A function of a kernel takes whichever arguments it wants, in any order. A parameter whose annotation is a struct class
takes the arguments that its fields name. Arrays that the schema declares and this attr lacks are `None`.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import CodeType
from typing import Any

from jitkernels.codegen.function_ast import place_of
from jitkernels.errors import BuildError

Function = Callable[..., Any]


def struct_fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of a struct class, a NamedTuple or a dataclass, with their annotations; None for anything else."""
    is_struct = isinstance(value, type) and (is_dataclass(value) or hasattr(value, "_fields"))
    return _annotations(value, vars(sys.modules[value.__module__])) if is_struct else None


def _annotations(value: Any, scope: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotations of a function or class; names in text are looked up in a module."""
    annotations = inspect.get_annotations(value)
    return {name: scope.get(kind) if isinstance(kind, str) else kind for name, kind in annotations.items()}


def used_fields(value: Any, code: CodeType) -> Mapping[str, Any] | None:
    """The fields and properties of a struct from around a function that its code may read; None for anything else."""
    fields = struct_fields(type(value))
    if fields is None:
        return None
    names = sorted({*code.co_names})
    return {name: getattr(value, name) for name in names if name in fields or is_property(value, name)}


def is_property(value: Any, name: str) -> bool:
    """Whether a name is that of a property of a struct."""
    return isinstance(getattr(type(value), name, None), property)


def parameters_of(function: Function) -> Iterator[tuple[str, Any]]:
    """The names of a function's parameters with their annotations."""
    code = function.__code__
    annotations = _annotations(function, function.__globals__)
    for name in code.co_varnames[: code.co_argcount]:
        yield name, annotations.get(name)


def described(function: Function, names: Sequence[str]) -> str:
    """The parameters and the structs among them, as text. Raises BuildError for one that no argument is called like."""
    return ", ".join(_described(function, name, kind, names) for name, kind in parameters_of(function))


def _described(function: Function, name: str, kind: Any, names: Sequence[str]) -> str:
    fields = struct_fields(kind)
    if fields is not None:
        listed = ", ".join(_described(function, field, inner, names) for field, inner in fields.items())
        return f"{name}: {kind.__name__}({listed})"
    if name not in names:
        raise BuildError(
            f"{place_of(function.__code__)}: the parameter {name} is no argument of the kernel: "
            f"expected some of {', '.join(names)}, or structs of them"
        )
    return name
