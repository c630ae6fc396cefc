"""Flattens arguments into leaves (arrays and numbers) and a hashable structure, the key of a specialization.

It traverses tuples, lists, dicts, dataclasses, other objects with attributes, and functions: their globals and free
variables are arguments too, read again at each call.
"""

import dataclasses
import enum
import functools
import operator
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from jitkernels.attrs.schema import foreign_arrays
from jitkernels.compiler.capture import free_variables, impure
from jitkernels.compiler.capture.native.native_functions import is_native
from jitkernels.compiler.capture.numba_dispatchers import as_python, refuse_stencil, ufunc_source
from jitkernels.compiler.capture.pytree.attribute_guards import AttributeNames, class_attribute, guarded
from jitkernels.compiler.capture.pytree.class_guards import check_attributes, check_shared
from jitkernels.compiler.capture.pytree.sentinels import is_sentinel
from jitkernels.compiler.capture.pytree.static_key import static
from jitkernels.compiler.capture.random import generator_states
from jitkernels.compiler.capture.structured import field_views
from jitkernels.compiler.capture.trace_context import INT64
from jitkernels.compiler.ir import pytree
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import DTYPES
from jitkernels.compiler.ir.static_dim_policy import MAX_STATIC_EXTENT, MAX_VECTOR_STRIDE, MIN_STATIC_ELEMENTS

MOST_LEAVES = 1024
MAX_OPEN_CONTAINERS = 12
CONSTANTS: tuple[type, ...] = (
    type(None), str, bytes, type(Ellipsis), type(NotImplemented), range, slice, np.dtype,
    types.BuiltinFunctionType, np.ufunc, types.MethodDescriptorType, types.WrapperDescriptorType,
    type(np.sum),
)  # fmt: skip
FUNCTIONS = (types.BuiltinFunctionType, types.FunctionType, types.MethodType)
CYTHON = "cython_function_or_method"
"""The name of the type of functions that Cython compiled; each module has its own."""
STATEFUL = "numpy.random"
"""The module of NumPy's generators, by name: its import takes longer than that of all operations."""
_numbers = {np.dtype(name).type for name in DTYPES}
_dtypes = {np.dtype(name) for name in DTYPES}


class Leaf(str):
    """The mark of a leaf in a structure, distinct from plain strings, which are names."""

    __slots__ = ()


ARRAY, FOREIGN, FLOAT, COMPLEX, INT, NUMBER = map(Leaf, "ADFCIN")
"""An array, one of another library, a Python float, complex number or int, a NumPy scalar."""
SHARED = bool, int, float, complex, str, tuple, list, dict, np.ndarray, np.generic
"""Types of attributes of classes and modules that other code may change between calls."""
ARGUMENT = "an argument"
"""What reasons begin with that are about a value, whose name the caller knows."""


class Flattener:
    """Collects the leaves of one call in order. `flatten` returns the hashable structure."""

    def __init__(self, static_names: tuple[str, ...] = (), names: AttributeNames | None = None) -> None:
        self._static_names = static_names
        self.leaves: list[Any] = []
        self.objects: list[Any] = []
        self.locks: list[tuple[Any, Any]] = []
        self._generators: dict[int, int] = {}
        self.names = names or AttributeNames()
        self._open: list[int] = []
        self._functions: set[int] = set()
        self._kinds: set[type] = set()
        self.classes: dict[type, None] = {}

    def flatten(self, value: Any) -> Any:
        """Flatten one value. Raises UnsupportedError for unsupported types."""
        kind = type(value)
        if kind is np.ndarray and value.dtype.names is None:
            return self._array(value)
        if kind is float:
            return self._leaf(value, FLOAT)
        if kind is complex:
            return self._leaf(value, COMPLEX)
        if kind is int:
            return self._leaf(value, INT) if value in INT64 else ("static", kind, value)
        if kind is bool:
            return "static", kind, value
        if kind in _numbers:
            return self._leaf(value, NUMBER)
        return self._container(value, kind)

    def argument(self, value: Any) -> Any:
        """Flatten an argument. Rejects classes and modules whose mutable attributes the function reads."""
        if isinstance(value, type | types.ModuleType) and not free_variables.is_unchanging(value):
            for name in sorted(self.names.all):
                item = getattr(value, name, None)
                if isinstance(item, SHARED) and not isinstance(item, enum.Enum):
                    raise UnsupportedError(f"{value.__name__}.{name}, of an argument that is a class or module")
        return self.flatten(value)

    def _look_at_function(self, value: Any) -> None:
        """Reject impure functions; `getattr` and the like make names of attributes of all strings."""
        why = impure.why_impure(value)
        if why:
            raise UnsupportedError(why)
        if value is getattr or value is hasattr or value is operator.attrgetter:
            self.names.read_by_name()

    def _leaf(self, value: Any, mark: Leaf) -> Leaf:
        if len(self.leaves) >= MOST_LEAVES:
            raise UnsupportedError(f"more than {MOST_LEAVES} arrays and numbers as arguments")
        self.leaves.append(value)
        return mark

    def _array(self, value: Any) -> Leaf:
        if value.dtype not in _dtypes or not value.dtype.isnative:
            raise UnsupportedError(f"an argument of dtype {value.dtype}")
        if not value.flags.aligned:
            raise UnsupportedError("an argument that is not aligned")
        if not value.flags.c_contiguous and any(step % value.itemsize for step in value.strides):
            raise UnsupportedError("an argument whose strides are no multiples of its elements")
        return self._leaf(value, ARRAY)

    def _container(self, value: Any, kind: type) -> Any:
        if (ufunc := ufunc_source(value)) is not None:
            return "ufunc", (ufunc.layout, ufunc.types), self.flatten(ufunc.function)
        value = as_python(value)
        kind = type(value)
        if kind is frozenset:
            return "static", kind, free_variables.Constant(frozenset(map(static, value)), value)
        if kind in FUNCTIONS or isinstance(value, type):
            self._look_at_function(value)
        if kind in CONSTANTS or isinstance(value, type | enum.Enum | np.dtype):
            if kind is slice:
                return "slice", *(self.flatten(item) for item in (value.start, value.stop, value.step))
            if kind is str:
                self.names.add_string(value)
            if isinstance(value, type | enum.Enum):
                self.classes[value if isinstance(value, type) else kind] = None
            return guarded(value, ("static", kind, value), self.names)
        if id(value) in self._open:
            raise UnsupportedError(f"an argument of type {kind.__name__} that refers to itself")
        if len(self._open) > MAX_OPEN_CONTAINERS:
            raise UnsupportedError("an argument nested too deeply")
        self._open.append(id(value))
        try:
            return guarded(value, self._opened(value, kind), self.names)
        finally:
            self._open.pop()

    def _opened(self, value: Any, kind: type) -> Any:
        if kind is tuple or kind is list:
            return kind, tuple([self.flatten(item) for item in value])
        if kind is dict:
            if not all(type(key) in (str, int, bool, tuple, type(None)) for key in value):
                raise UnsupportedError("a dict with keys that are no names")
            return kind, tuple(value), tuple([self.flatten(item) for item in value.values()])
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            if getattr(value, "__dict__", None):
                raise UnsupportedError("a named tuple with other attributes than its elements")
            self.classes[kind] = None
            check_attributes(kind, self.names.use("all"))
            return "named", kind, tuple([self.flatten(item) for item in value])
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.MethodType and type(value.__self__).__module__.startswith(STATEFUL):
            return "drawn", value.__name__, self._generator(value.__self__)
        if kind is types.MethodType:
            return "method", self.flatten(value.__func__), self.flatten(value.__self__)
        if kind is functools.partial:
            return "partial", *(self.flatten(item) for item in (value.func, value.args, value.keywords))
        if kind.__name__ == CYTHON and str(value.__module__).startswith(STATEFUL):
            return "static", kind, free_variables.Same(value)
        if kind is types.ModuleType or is_native(value):
            return "static", kind, free_variables.Same(value)
        if (inner := getattr(kind, "__jitkernels_traced__", None)) is not None:
            return self.flatten(inner(value))
        if kind is np.vectorize:
            if value.signature or value.excluded or value.cache:
                raise UnsupportedError("numpy.vectorize with a signature, excluded arguments or a cache")
            return "object", kind, ("pyfunc", "otypes"), (self.flatten(value.pyfunc), self.flatten(value.otypes)), ()
        refuse_stencil(value)
        if field_views.is_structured(value):
            return "structured", kind, value.dtype, tuple(map(self._array, field_views.fields_of(value)))
        if foreign_arrays.is_foreign(value):
            return self._foreign(value)
        if isinstance(value, np.ndarray | np.generic):
            raise UnsupportedError(f"an argument of type {kind.__name__}")
        return self._object(value, kind)

    def _foreign(self, value: Any) -> Any:
        """An array of another library in a container, read without a copy."""
        try:
            array = np.asarray(foreign_arrays.as_array(value))
        except foreign_arrays.NotShareableError as error:
            raise UnsupportedError(f"an argument that is {error}") from None
        self._array(array)
        return FOREIGN

    def _object(self, value: Any, kind: type) -> Any:
        if any(base.__module__.startswith(STATEFUL) for base in kind.__mro__):
            return self._generator(value)
        if is_sentinel(value):
            return "static", kind, free_variables.Same(value)
        if dataclasses.is_dataclass(value):
            names = pytree.attribute_names(value)
        elif kind.__module__ in ("builtins", "numpy") or not hasattr(value, "__dict__"):
            raise UnsupportedError(f"an argument of type {kind.__name__}")
        else:
            if any(hasattr(item, "__slots__") and item.__slots__ for item in kind.__mro__):
                raise UnsupportedError(f"an argument of type {kind.__name__}, which has __slots__")
            names = tuple(vars(value))
        own = getattr(value, "__dict__", None)  # past descriptors of the class, which may give something else
        parts = tuple([self.flatten(getattr(value, name) if own is None else own[name]) for name in names])
        return "object", kind, names, parts, self._methods(kind, names)

    def _generator(self, value: Any) -> Any:
        """A random generator: the arrays of its state, once."""
        if id(value) in self._generators:
            return "same generator", self._generators[id(value)]
        table = generator_states.table_of(value)
        entry = table.admit(value)
        assert entry is not None, "the generator's own table"
        self._generators[id(value)] = len(self._generators)
        self.locks.append(entry[: generator_states.FIRST_ARRAY])
        arrays = entry[generator_states.FIRST_ARRAY :]
        return "generator", table.owner, table.kind, tuple([self._array(array) for array in arrays])

    def _methods(self, kind: type, own: tuple[str, ...]) -> tuple[Any, ...]:
        """Methods and plain class attributes that the function reads by name."""
        result: dict[str, Any] = {}
        self.classes[kind] = None
        if kind not in self._kinds:
            self._kinds.add(kind)
            for value in free_variables.operators_of(kind):
                self._hidden(value)
        while True:
            more = [name for name in sorted(self.names.use("all")) if name not in result and name not in own]
            for name in more:
                found = class_attribute(kind, name)
                value = found[0] if found else None
                if isinstance(value, types.FunctionType) and not name.startswith("__"):
                    result[name] = "function", self._function(value)
                elif isinstance(value, bool | int | float | str | tuple):
                    result[name] = "value", free_variables.Constant(static(value), value)
                else:
                    check_shared(kind, name, value)
                    result[name] = ("hidden", None) if found and not hasattr(type(value), "__set__") else None
                    self._hidden(value)
            if not more:
                return tuple((name, value) for name, value in result.items() if value is not None)

    def _hidden(self, value: Any) -> None:
        """Collect the attributes that implicitly called code reads: properties, operators, compiled methods."""
        for code in free_variables.called_by(value):
            self.names.add_code(code)

    def function(self, value: types.FunctionType) -> Any:
        """Flatten the traced function; its defaults are among the arguments already."""
        self._open.append(id(value))
        try:
            return self._function(value, is_outermost=True)
        finally:
            self._open.pop()

    def _read(self, read: free_variables.Read) -> Any:
        """An attribute of a module or class: a constant of the code, or an argument."""
        value = generator_states.as_method(as_python(read.value))
        self._look_at_function(value)
        if type(value) is types.MethodType and type(value.__self__).__module__.startswith(STATEFUL):
            return self._opened(value, types.MethodType)
        if read.is_known:
            return "static", type(value), free_variables.Same(value)
        if value is None or isinstance(value, bool | int | float | str | tuple | np.dtype):
            return "static", type(value), free_variables.Constant(static(value), value)
        if isinstance(read.owner, types.ModuleType):
            count = len(self.leaves)
            try:
                return self.flatten(value)
            except UnsupportedError:
                if not callable(value):
                    raise
                del self.leaves[count:]
        if not callable(value):
            raise UnsupportedError(f"the function reads {'.'.join(read.chain)}")
        return "static", type(value), free_variables.Same(value)  # the trace calls and checks it

    def _referred(self, name: str, value: Any, is_static: bool) -> Any:
        """The value of a global or free variable, which the reason names where it is none that code reads."""
        try:
            return constant(value) if is_static else self.flatten(value)
        except UnsupportedError as error:
            text = str(error)
            if not text.startswith(ARGUMENT) or error.is_placed:
                raise
            raise UnsupportedError(text.replace(ARGUMENT, f"the variable {name!r} holds a value", 1)) from None

    def _function(self, value: types.FunctionType, *, is_outermost: bool = False) -> Any:
        """A function with its free variables, defaults and globals."""
        if free_variables.is_library(value):
            return "static", types.FunctionType, value
        names = free_variables.names_of(value.__code__)
        self._functions.add(id(value))
        if names.refused:
            raise UnsupportedError(f"{names.refused} ({value.__code__.co_filename}:{names.line})", is_placed=True)
        if names.assigns:
            location = free_variables.place_of(value.__code__, names.assigns)
            raise UnsupportedError(f"the function assigns to an attribute, {names.assigns!r}{location}", is_placed=True)
        statics = self._static_names if is_outermost else ()
        around = free_variables.around(value)
        bound = free_variables.globals_of(value, names.names)
        for name, item in (*around.items(), *bound.items()):
            why = impure.why_impure(item)
            if why:
                raise UnsupportedError(f"{why}{free_variables.place_of(value.__code__, name)}", is_placed=True)
        cells = tuple([self._referred(name, item, name in statics) for name, item in around.items()])
        keywords = {} if is_outermost else value.__kwdefaults__ or {}
        defaults = () if is_outermost else tuple([self.flatten(item) for item in value.__defaults__ or ()])
        keyword_defaults = tuple([(name, self.flatten(item)) for name, item in keywords.items()])
        self.names.add_code(value.__code__)
        attributes = free_variables.attributes_of(names, around, value.__globals__)
        parts = []
        for name, item in bound.items():
            callee = as_python(item)  # which a recursive function of numba's is open as
            if id(callee) in self._open and type(callee) is types.FunctionType:
                functions = [number for number in self._open if number in self._functions]
                parts.append((name, ("recursive", functions.index(id(callee)))))
                continue
            parts.append((name, self._referred(name, item, name in statics)))
        read = tuple([(item.chain, self._read(item)) for item in attributes])
        return (
            "function",
            value.__code__,
            free_variables.Same(value.__globals__),
            cells,
            defaults,
            keyword_defaults,
            tuple(parts),
            read,
        )


def constant(value: Any) -> Any:
    """The structure of a static argument."""
    return "static", None, free_variables.Constant(static(value), value)


def short_extent(leaf: Any) -> int:
    """The last extent of a large array if it is so short that it is a constant of the code; else 0."""
    if (
        type(leaf) is np.ndarray
        and leaf.ndim > 1
        and 1 < leaf.shape[-1] <= MAX_STATIC_EXTENT
        and leaf.size >= MIN_STATIC_ELEMENTS
    ):
        return int(leaf.shape[-1])
    return 0


def pattern_of(leaf: Any, marks: dict[int, int]) -> Any:
    """The pattern of a leaf: dtype, extents (0, 1, short ones, which others are equal), strides; else its type.

    `marks` stands for extents of the leaves before, and is extended.
    """
    if type(leaf) is not np.ndarray:
        return type(leaf)
    shape = tuple([extent if extent < 2 else marks.setdefault(extent, len(marks) + 2) for extent in leaf.shape])
    flags = leaf.flags
    return leaf.dtype.num, shape, None if flags.c_contiguous else True if flags.f_contiguous else strides_of(leaf)


def strides_of(array: Any) -> tuple[int | None, ...]:
    """Strides in elements where these are small; None for others."""
    size = array.itemsize
    most = MAX_VECTOR_STRIDE * size
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
        for part in structure:
            yield from leaves_of(part)
