"""Arguments taken apart: the arrays and numbers in them, and the structure that code is made for.

Tuples, lists, dicts, dataclasses and other objects with attributes are looked into, and so are functions: what they
refer to by name are arguments too, which are read again at each call.
"""

import dataclasses
import enum
import functools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jitkernels.frontends import captured
from jitkernels.frontends.tracer import INT64
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.scalars import DTYPES
from jitkernels.graph.short import MANY, MOST, WIDEST

MOST_LEAVES = 1024
DEPTH = 12
CONSTANTS: tuple[type, ...] = (
    type(None), str, bytes, complex, type(Ellipsis), type(NotImplemented), range, slice, np.dtype,
    types.BuiltinFunctionType, np.ufunc, types.MethodDescriptorType, types.WrapperDescriptorType,
    type(np.sum),
)  # fmt: skip
STATEFUL = "numpy.random"
"""Where NumPy's generators are from, whose import takes longer than that of all operations."""
_numbers = {np.dtype(name).type for name in DTYPES}
_dtypes = {np.dtype(name) for name in DTYPES}


class Leaf(str):
    """What stands for a leaf in a structure, where plain strings are names."""

    __slots__ = ()


ARRAY, FOREIGN, FLOAT, INT, NUMBER = map(Leaf, "ADFIN")
"""An array, one of another library, a Python float, an int, a NumPy scalar."""


SHARED = bool, int, float, complex, str, tuple, list, dict, np.ndarray, np.generic
"""Attributes of classes and modules that others may change between calls."""


class Flattener:
    """Leaves of the arguments of one call, in order. `flatten` gives the structure, which is hashable."""

    def __init__(self, static_names: tuple[str, ...] = (), attributes: Iterable[str] = ()) -> None:
        self._static_names = static_names
        self.leaves: list[Any] = []
        self.objects: list[Any] = []
        self.attributes = set(attributes)
        self._known = -1
        self._open: list[int] = []
        self._kinds: set[type] = set()

    def flatten(self, value: Any) -> Any:
        """Take one value apart. Raises UnknownError for what code cannot be made for."""
        kind = type(value)
        if kind is np.ndarray:
            return self._array(value)
        if kind is float:
            return self._leaf(value, FLOAT)
        if kind is int:
            return self._leaf(value, INT) if value in INT64 else ("static", kind, value)
        if kind is bool:
            return "static", kind, value
        if kind in _numbers:
            return self._leaf(value, NUMBER)
        return self._container(value, kind)

    @property
    def is_late(self) -> bool:
        """Whether attributes were found that objects before were not asked for."""
        return 0 <= self._known < len(self.attributes)

    def argument(self, value: Any) -> Any:
        """Take an argument apart. Of classes and modules nobody would look again at what the function reads."""
        if isinstance(value, type | types.ModuleType) and not captured.is_unchanging(value):
            for name in sorted(self.attributes):
                one = getattr(value, name, None)
                if isinstance(one, SHARED) and not isinstance(one, enum.Enum):
                    raise UnknownError(f"{value.__name__}.{name}, of an argument that is a class or module")
        return self.flatten(value)

    def _leaf(self, value: Any, mark: Leaf) -> Leaf:
        if len(self.leaves) >= MOST_LEAVES:
            raise UnknownError(f"more than {MOST_LEAVES} arrays and numbers as arguments")
        self.leaves.append(value)
        return mark

    def _array(self, value: Any) -> Leaf:
        if value.dtype not in _dtypes or not value.dtype.isnative:
            raise UnknownError(f"an argument of dtype {value.dtype}")
        if not value.flags.aligned:
            raise UnknownError("an argument that is not aligned")
        if not value.flags.c_contiguous and any(step % value.itemsize for step in value.strides):
            raise UnknownError("an argument whose strides are no multiples of its elements")
        return self._leaf(value, ARRAY)

    def _container(self, value: Any, kind: type) -> Any:
        if kind is frozenset:
            return "static", kind, captured.Constant(frozenset(map(static, value)), value)
        if kind in CONSTANTS or isinstance(value, type | enum.Enum | np.dtype):
            if kind is slice:
                return "slice", *(self.flatten(one) for one in (value.start, value.stop, value.step))
            return "static", kind, value
        if id(value) in self._open:
            raise UnknownError("an argument that contains itself")
        if len(self._open) > DEPTH:
            raise UnknownError("an argument nested too deeply")
        self._open.append(id(value))
        try:
            return self._opened(value, kind)
        finally:
            self._open.pop()

    def _opened(self, value: Any, kind: type) -> Any:
        if kind is tuple or kind is list:
            return kind, tuple([self.flatten(one) for one in value])
        if kind is dict:
            if not all(type(key) in (str, int, bool, tuple, type(None)) for key in value):
                raise UnknownError("a dict with keys that are no names")
            return kind, tuple(value), tuple([self.flatten(one) for one in value.values()])
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return "named", kind, tuple([self.flatten(one) for one in value])
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType:
            return "method", self.flatten(value.__func__), self.flatten(value.__self__)
        if kind is functools.partial:
            parts = value.func, value.args, value.keywords
            return "partial", *(self.flatten(one) for one in parts)
        if kind is types.ModuleType:
            captured.refuse_module(value)
            return "static", kind, captured.Same(value)
        inner = getattr(kind, "__jitkernels_traced__", None)
        if inner is not None:
            return self.flatten(inner(value))
        if hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"):
            return self._foreign(value)
        return self._object(value, kind)

    def _foreign(self, value: Any) -> Any:
        """Arrays of other libraries are read in place."""
        if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array_ufunc__"):
            raise UnknownError(f"an argument of type {type(value).__name__}")
        array = np.asarray(value) if hasattr(value, "__array_interface__") else np.from_dlpack(value)
        if type(array) is not np.ndarray:
            raise UnknownError(f"an argument of type {type(value).__name__}")
        self._array(array)
        return FOREIGN

    def _object(self, value: Any, kind: type) -> Any:
        if any(base.__module__.startswith(STATEFUL) for base in kind.__mro__):
            raise UnknownError(f"a random generator ({kind.__name__}), which changes as it is used")
        if dataclasses.is_dataclass(value):
            names: tuple[str, ...] = tuple(field.name for field in dataclasses.fields(value))
            if hasattr(value, "__dict__"):
                names = tuple(vars(value))
        elif kind.__module__ in ("builtins", "numpy") or not hasattr(value, "__dict__"):
            raise UnknownError(f"an argument of type {kind.__name__}")
        else:
            if any(hasattr(one, "__slots__") and one.__slots__ for one in kind.__mro__):
                raise UnknownError(f"an argument of type {kind.__name__}, which has __slots__")
            names = tuple(vars(value))
        parts = tuple([self.flatten(getattr(value, name)) for name in names])
        return "object", kind, names, parts, self._methods(kind, names)

    def _methods(self, kind: type, own: tuple[str, ...]) -> tuple[Any, ...]:
        """What a class gives its objects: methods and plain values that the function asks for by name."""
        found: dict[str, Any] = {}
        if kind not in self._kinds:
            self._kinds.add(kind)
            for one in captured.operators_of(kind):
                self._hidden(one)
        while True:
            more = [name for name in sorted(self.attributes) if name not in found and name not in own]
            for name in more:
                one = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
                if isinstance(one, types.FunctionType) and not name.startswith("__"):
                    found[name] = "function", self._function(one)
                elif isinstance(one, bool | int | float | str | tuple):
                    found[name] = "value", captured.Constant(static(one), one)
                elif isinstance(one, np.ndarray | list | dict):
                    raise UnknownError(f"{kind.__name__}.{name}, which all objects of the class share")
                else:
                    found[name] = None
                    self._hidden(one)
            if not more:
                self._known = len(self.attributes) if self._known < 0 else self._known
                return tuple((name, one) for name, one in found.items() if one is not None)

    def _hidden(self, value: Any) -> None:
        """What is called without its name reads attributes, too: properties, operators, compiled methods."""
        for code in captured.called_by(value):
            self.attributes |= captured.attributes_in(code)

    def function(self, value: types.FunctionType) -> Any:
        """The function that is traced: its defaults are among its arguments."""
        self._open.append(id(value))
        try:
            return self._function(value, is_outermost=True)
        finally:
            self._open.pop()

    def _read(self, one: captured.Read) -> Any:
        """A value that is read as an attribute of a module or class: a constant of the code, or an argument."""
        value = one.value
        if one.is_known:
            return "static", type(value), captured.Same(value)
        if value is None or isinstance(value, bool | int | float | str | tuple | np.dtype):
            return "static", type(value), captured.Constant(static(value), value)
        if isinstance(one.owner, types.ModuleType):
            count = len(self.leaves)
            try:
                return self.flatten(value)
            except UnknownError:
                if not callable(value):
                    raise
                del self.leaves[count:]
        if not callable(value):
            raise UnknownError(f"the function reads {'.'.join(one.chain)}")
        return "static", type(value), captured.Same(value)  # which the trace calls, and looks at

    def _referred(self, value: Any, is_static: bool) -> Any:
        """What a function refers to by name."""
        return constant(value) if is_static else self.flatten(value)

    def _function(self, value: types.FunctionType, *, is_outermost: bool = False) -> Any:
        """A function and all that it refers to: cells, defaults, and globals by their names."""
        if captured.is_library(value):
            return "static", types.FunctionType, value
        found = captured.names_of(value.__code__)
        if found.refused:
            raise UnknownError(f"{found.refused} ({value.__code__.co_filename}:{found.line})", is_placed=True)
        if found.assigns:
            place = captured.place_of(value.__code__, found.assigns)
            raise UnknownError(
                f"the function assigns to an attribute, {found.assigns!r}{place}", is_placed=True
            )
        statics = self._static_names if is_outermost else ()
        around = captured.around(value)
        cells = tuple([self._referred(one, name in statics) for name, one in around.items()])
        keywords = {} if is_outermost else value.__kwdefaults__ or {}
        defaults = () if is_outermost else tuple([self.flatten(one) for one in value.__defaults__ or ()])
        keyword_defaults = tuple([(name, self.flatten(one)) for name, one in keywords.items()])
        bound = captured.globals_of(value, found.names)
        self.attributes |= found.attributes
        attributes = captured.attributes_of(found, around, value.__globals__)
        parts = []
        for name, one in bound.items():
            if id(one) in self._open:
                place = captured.place_of(value.__code__, name)
                raise UnknownError(
                    f"{name!r} refers to itself, by recursion: write a loop{place}", is_placed=True
                )
            parts.append((name, self._referred(one, name in statics)))
        read = tuple([(one.chain, self._read(one)) for one in attributes])
        return (
            "function",
            value.__code__,
            captured.Same(value.__globals__),
            cells,
            defaults,
            keyword_defaults,
            tuple(parts),
            read,
        )


def flattened(static_names: tuple[str, ...], take: Callable[[Flattener], Any]) -> tuple[Any, list[Any]]:
    """What `take` makes of a flattener, and the leaves: once more where later arguments ask earlier ones for more."""
    flattener = Flattener(static_names)
    found = take(flattener)
    while flattener.is_late:
        flattener = Flattener(static_names, flattener.attributes)
        found = take(flattener)
    return found, flattener.leaves


def constant(value: Any) -> Any:
    """The structure of a static argument."""
    return "static", None, captured.Constant(static(value), value)


def short_extents(leaves: Sequence[Any]) -> frozenset[int]:
    """Extents that are numbers of the code for these leaves, besides 0 and 1."""
    return frozenset(
        leaf.shape[-1]
        for leaf in leaves
        if type(leaf) is np.ndarray and leaf.ndim > 1 and 1 < leaf.shape[-1] <= MOST and leaf.size >= MANY
    )


def patterns(leaves: list[Any]) -> tuple[Any, ...]:
    """For each leaf what code is made for: dtype; extents of 0 or 1, short ones, others, which are equal; strides."""
    found: dict[int, int] = {one: -one for one in short_extents(leaves)}
    result: list[Any] = []
    for leaf in leaves:
        if type(leaf) is np.ndarray:
            shape = tuple([one if one < 2 else found.setdefault(one, len(found) + 2) for one in leaf.shape])
            flags = leaf.flags
            lies = None if flags.c_contiguous else True if flags.f_contiguous else strides_of(leaf)
            result.append((leaf.dtype.num, shape, lies))
        else:
            result.append(type(leaf))
    return tuple(result)


def strides_of(array: Any) -> tuple[int | None, ...]:
    """Distances in elements where these are few."""
    size = array.itemsize
    most = WIDEST * size
    return tuple(
        [
            0 if extent == 1 else step // size if -most <= step <= most else None
            for extent, step in zip(array.shape, array.strides, strict=True)
        ]
    )


def leaves_of(structure: Any) -> Iterator[Leaf]:
    """The leaves of a structure, in order."""
    if type(structure) is Leaf:
        yield structure
    elif type(structure) is tuple and structure[:1] != ("static",):
        for one in structure:
            yield from leaves_of(one)


def static(value: Any) -> Any:
    """A key of a static argument: equal for equal ones of the same types."""
    if isinstance(value, tuple | list):
        return type(value), tuple(map(static, value))
    if isinstance(value, dict):
        return dict, tuple((static(key), static(one)) for key, one in value.items())
    if isinstance(value, float):
        return type(value), value.hex()
    try:
        hash(value)
    except TypeError:
        return type(value), captured.Same(value)
    return type(value), value
