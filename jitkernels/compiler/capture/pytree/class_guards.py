"""Guards of classes: what code does with their objects depends on attributes of classes, which other code may set.

1. Functions, properties and other descriptors of a class, its bases and their order are guarded by identity, whatever
   their names: operators and inherited methods are called without a name in the code.
2. Constants are guarded by value, where any function that the call may run reads their names.
3. Objects that classes hold are guarded with their attributes, where these are constants. Others may change without
   notice; `check_shared` refuses those that code reads.
"""

import enum
import functools
import operator
import types
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.free_variables import (
    Constant,
    Same,
    attributes_in,
    is_library,
    is_unchanging,
    names_of,
)
from jitkernels.compiler.capture.native.native_functions import is_native
from jitkernels.compiler.capture.numba_dispatchers import as_python, ufunc_source
from jitkernels.compiler.capture.pytree.attribute_guards import CONSTANT
from jitkernels.compiler.capture.pytree.sentinels import is_sentinel
from jitkernels.compiler.capture.pytree.static_key import static
from jitkernels.compiler.ir.builder import UnsupportedError


class _Pair(NamedTuple):
    """A named tuple, for the type of the descriptors of its elements."""

    value: Any


DESCRIPTORS: tuple[type, ...] = (
    types.FunctionType, property, staticmethod, classmethod, functools.cached_property, functools.partialmethod,
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType,
    types.MemberDescriptorType, types.GetSetDescriptorType, types.DynamicClassAttribute,
    type(vars(_Pair)["value"]),
)  # fmt: skip
"""Types of attributes of classes that are code, or that find attributes of objects."""
FIXED: tuple[type, ...] = (
    *(*DESCRIPTORS, type, types.ModuleType, types.MethodType, enum.Enum, frozenset, bytes, range, np.generic),
    *(np.ufunc, type(np.sum), type(Ellipsis), type(NotImplemented)),
)
"""Types of values that are guarded by identity."""
IMMUTABLE_MODULES = "operator", "functools"
"""Modules of callables whose objects nothing changes."""
PACKAGES = "-packages/"
"""What paths of installed packages have in them: the globals that their functions call are not guarded."""
APPEARING = frozenset({
    "__getattribute__", "__getattr__", "__bool__", "__len__", "__eq__", "__ne__", "__contains__", "__iter__",
    "__call__", "__getitem__",
})  # fmt: skip
"""Special methods without which objects have another meaning."""


class ClassGuards(NamedTuple):
    """What a specialization compares of classes.

    `orders`: classes and their method resolution orders. `attributes`: those of each class. `objects`: what classes
    hold, with its attributes. `callees`: globals of functions of classes. `codes`: the code of all these functions,
    which module reloaders replace in place. `names`: those that code may read.
    """

    orders: tuple[tuple[Same, tuple[Same, ...]], ...]
    attributes: tuple[tuple[Same, tuple[tuple[str, Same], ...]], ...]
    objects: tuple[tuple[Same, tuple[tuple[str, Same], ...]], ...]
    callees: tuple[tuple[Same, str, Same], ...]
    codes: tuple[tuple[Same, Same], ...]
    names: frozenset[str]


def guards_of(kinds: Sequence[type], names: set[str]) -> ClassGuards:
    """The guards of classes that a call has values of, or refers to. `names`: the attributes that its code reads."""
    orders: dict[type, tuple[Same, ...]] = {}
    objects: dict[int, tuple[Same, tuple[tuple[str, Same], ...]]] = {}
    bases: dict[type, None] = {}
    read = set(names)
    waiting = [*kinds]
    while waiting:
        kind = waiting.pop()
        if kind in orders or is_unchanging(kind):
            continue
        orders[kind] = tuple(map(Same, kind.__mro__))
        own = [base for base in kind.__mro__ if not is_unchanging(base)]
        bases.update(dict.fromkeys(own))
        for base in own:
            read |= _record_of(base).names
            for value in _objects_in(base):
                objects[id(value)] = Same(value), tuple((name, _part(one)) for name, one in vars(value).items())
                waiting.append(type(value))
    attributes = [(Same(base), tuple(_attributes_of(base, read))) for base in bases]
    functions = {id(one): one for base in bases for one in _record_of(base).functions}
    callees = tuple(_callees_of(functions))
    return ClassGuards(
        tuple((Same(kind), order) for kind, order in orders.items()),
        tuple(attributes),
        tuple(objects.values()),
        callees,
        tuple((Same(one), Same(one.__code__)) for one in functions.values()),
        frozenset(read),
    )


def check_shared(kind: type, name: str, value: Any) -> None:
    """Raise UnsupportedError for an attribute of a class whose value may change without notice."""
    is_guarded = (
        isinstance(value, (*FIXED, *CONSTANT))
        or (callable(value) and type(value).__module__.lstrip("_") in IMMUTABLE_MODULES)
        or hasattr(type(value), "__jitkernels_traced__")
        or type(value) is np.vectorize
        or ufunc_source(value) is not None
        or type(as_python(value)) is types.FunctionType
        or is_native(value)
        or is_sentinel(value)
        or _has_constants(value)
    )
    if not is_guarded:
        raise UnsupportedError(f"{kind.__name__}.{name}, which all objects of the class share")


def check_attributes(kind: type, names: set[str]) -> None:
    """`check_shared` of the attributes of a class and its bases that code reads."""
    for base in kind.__mro__:
        for name in () if is_unchanging(base) else sorted(names.intersection(vars(base))):
            check_shared(base, name, vars(base)[name])


class _Record(NamedTuple):
    """What a class defines. `values`: those of its dict, which tell whether the record still holds.

    `code`: its functions and other descriptors; `functions`: those that these wrap, with their `codes`; `names`: what
    they read.
    """

    values: tuple[Any, ...]
    keys: tuple[str, ...]
    code: tuple[tuple[str, Same], ...]
    functions: tuple[types.FunctionType, ...]
    codes: tuple[types.CodeType, ...]
    names: frozenset[str]


_records: dict[int, tuple[type, _Record]] = {}
MOST_RECORDS = 256


def _record_of(base: type) -> _Record:
    """The functions of a class, and the names of attributes that these read."""
    table = vars(base)
    values = tuple(table.values())
    _, known = _records.get(id(base), (base, None))
    if known is not None and known.keys == tuple(table) and all(map(operator.is_, known.values, values)):
        codes = [one.__code__ for one in known.functions]
        if all(map(operator.is_, known.codes, codes)):
            return known
    functions = tuple(one for value in values for one in _functions_of(value))
    names = frozenset(name for one in functions for name in attributes_in(one.__code__))
    if len(_records) >= MOST_RECORDS:
        _records.clear()
    code = tuple((name, Same(value)) for name, value in table.items() if isinstance(value, DESCRIPTORS))
    record = _Record(values, tuple(table), code, functions, tuple(one.__code__ for one in functions), names)
    _records[id(base)] = base, record
    return record


def _functions_of(value: Any) -> Iterator[types.FunctionType]:
    """The functions of a class attribute: itself, or those that a descriptor wraps."""
    if isinstance(value, types.FunctionType):
        if not is_library(value):
            yield value
        return
    wrapped = (getattr(value, name, None) for name in ("fget", "func", "__func__"))
    for one in wrapped if isinstance(value, DESCRIPTORS) else ():
        yield from _functions_of(one)


def _attributes_of(base: type, names: set[str]) -> Iterator[tuple[str, Same]]:
    """The guarded attributes that a class defines itself."""
    yield from _record_of(base).code
    for name in sorted(names.intersection(vars(base))):
        value = vars(base)[name]
        if not isinstance(value, (*DESCRIPTORS, list, dict, np.ndarray)):
            yield name, _part(value)


def _part(value: Any) -> Same:
    return Constant(static(value), value) if isinstance(value, (*CONSTANT, np.generic)) else Same(value)


def _objects_in(base: type) -> Iterator[Any]:
    """The objects that a class holds which are guarded with their attributes."""
    return (value for value in vars(base).values() if not isinstance(value, FIXED) and _has_constants(value))


def _has_constants(value: Any) -> bool:
    """Whether an object of a user's class has nothing but constants as attributes."""
    kind = type(value)
    if is_unchanging(kind) or not hasattr(value, "__dict__") or isinstance(value, type | types.ModuleType):
        return False
    if any(getattr(base, "__slots__", ()) for base in kind.__mro__):
        return False
    return all(isinstance(one, (*FIXED, *CONSTANT)) for one in vars(value).values())


def _callees_of(functions: dict[int, types.FunctionType]) -> Iterator[tuple[Same, str, Same]]:
    """The globals that functions call, which are added to these: a trace refuses all other globals."""
    waiting = [*functions.values()]
    while waiting:
        function = waiting.pop()
        if is_library(function) or PACKAGES in function.__code__.co_filename:
            continue
        table = function.__globals__
        for name in names_of(function.__code__).names:
            value = table.get(name)
            if callable(value):
                yield Same(table), name, Same(value)
                if isinstance(value, types.FunctionType) and id(value) not in functions:
                    functions[id(value)] = value
                    waiting.append(value)
