"""Structured arrays and records in a trace: an array per field; indices select in all fields at once."""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.carried_trees import Composite
from jitkernels.compiler.capture.control_flow.iterables import LoopIterable, LoopRange, RunTimeIterable
from jitkernels.compiler.capture.dynamic import computed_size
from jitkernels.compiler.capture.dynamic.dynamic_array import is_int
from jitkernels.compiler.capture.functionalization import Storage
from jitkernels.compiler.capture.override_registry import serves
from jitkernels.compiler.ir.builder import UnsupportedError


class _Structured(Composite):
    """What arrays and records have in common."""

    dtype: np.dtype[Any]

    def field(self, name: str) -> Any:
        """The elements of a field, or the number in the field of a record."""
        raise NotImplementedError

    def _require(self, name: str) -> str:
        if name not in (self.dtype.names or ()):
            raise ValueError(f"no field of name {name}")
        return name

    def __eq__(self, other: object) -> Any:
        raise UnsupportedError("a comparison of structured arrays")

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"a structured array of fields {', '.join(map(repr, self.dtype.names or ()))}"

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise UnsupportedError("an operation of a structured array")

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> Any:
        raise UnsupportedError(f"numpy.{ufunc.__name__} of a structured array")

    def __array_function__(self, function: Any, _: Any, arguments: Any, keywords: Any) -> Any:
        if function is np.copy and len(arguments) == 1 and not keywords and type(self) is StructuredArray:
            return self.copy()
        raise UnsupportedError(f"numpy.{function.__name__} of a structured array")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnsupportedError(f"{name} of a structured array")


class StructuredArray(_Structured, RunTimeIterable):
    """An array of records. `fields`: by name an array of numbers, all of the same shape."""

    def __init__(self, dtype: np.dtype[Any], fields: Mapping[str, Any]) -> None:
        self.dtype, self.fields = dtype, dict(fields)
        self.origin = "structured", dtype

    def parts(self) -> Sequence[Any]:
        return list(self.fields.values())

    def of(self, parts: Sequence[Any]) -> "StructuredArray":
        return StructuredArray(self.dtype, dict(zip(self.fields, parts, strict=True)))

    @property
    def _first(self) -> Any:
        return next(iter(self.fields.values()))

    @property
    def shape(self) -> tuple[Any, ...]:
        return self._first.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        return self._first.ndim  # type: ignore[no-any-return]

    @property
    def size(self) -> Any:
        return self._first.size

    @property
    def length(self) -> Any:
        """The number of elements along the first dimension."""
        return self.shape[0]

    def loop_iterable(self) -> LoopIterable:
        return LoopIterable(LoopRange(0, self.length), self.__getitem__, tuple(self.fields.values()))

    def field(self, name: str) -> Any:
        return self.fields[self._require(name)]

    def copy(self) -> "StructuredArray":
        """``array.copy()``."""
        return self._each(lambda field: field.copy())

    def _each(self, function: Callable[[Any], Any]) -> "StructuredArray":
        return self.of([function(field) for field in self.fields.values()])

    def __getitem__(self, key: Any) -> Any:
        if type(key) is str:
            return self.field(key)
        indices = key if type(key) is tuple else (key,)
        if len(indices) == self.ndim and all(map(is_int, indices)):
            return RecordView(self, indices)
        if type(key) is list:
            raise UnsupportedError("several fields of a structured array")
        return self._each(lambda field: field[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        if type(key) is str:
            self.field(key)[...] = value
            return
        values = self._values(value)
        for field, part in zip(self.fields.values(), values, strict=True):
            field[key] = part

    def _values(self, value: Any) -> list[Any]:
        """What is assigned to each field."""
        if isinstance(value, _Structured) and value.dtype == self.dtype:
            return [value.field(name) for name in self.fields]
        if type(value) is tuple and len(value) == len(self.fields):
            return list(value)
        raise UnsupportedError("an assignment of other things than records or tuples to a structured array")


class RecordView(_Structured):
    """An element of an array of records: a view of it."""

    stands_for = np.void

    def __init__(self, array: StructuredArray, indices: tuple[Any, ...]) -> None:
        self.array, self.indices, self.dtype = array, indices, array.dtype
        self.origin = "record", id(array)
        if indices:
            array._first[indices]  # checks the bounds

    def parts(self) -> Sequence[Any]:
        return self.indices

    def of(self, parts: Sequence[Any]) -> "RecordView":
        return RecordView(self.array, tuple(parts))

    def _named(self, key: Any) -> str:
        if type(key) is str:
            return self._require(key)
        if type(key) is not int:
            raise UnsupportedError("a field of a record by a number that only the compiled code knows")
        return list(self.array.fields)[key]

    def field(self, name: str) -> Any:
        return self[name]

    def __getitem__(self, key: Any) -> Any:
        element = self.array.fields[self._named(key)][self.indices]
        return element[()] if type(element) is Traced and not element.ndim else element

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array.fields[self._named(key)][self.indices] = value

    def __len__(self) -> int:
        return len(self.array.fields)


@serves("structured")
def created(dtype: np.dtype[Any], make: Callable[[np.dtype[Any]], Any]) -> StructuredArray:
    """A new structured array, from `make` of the dtype of each field."""
    fields = {}
    for name in dtype.names or ():
        kind = dtype[name]
        if kind.names is not None or kind.subdtype is not None:
            raise UnsupportedError(f"a new array with a field {name!r} that is no number")
        fields[name] = make(kind)
    return StructuredArray(dtype, fields)


def argument(dtype: np.dtype[Any], fields: Mapping[str, Any], *, is_record: bool) -> _Structured:
    """A structured array or record of a call."""
    array = StructuredArray(dtype, fields)
    return RecordView(array, ()) if is_record else array


def as_result(value: Any) -> Any:
    """A part of the result of a call: records by the numbers in them, arrays of computed length with memory."""
    if type(value) is RecordView:
        return _NewRecord(value.dtype, {name: value[name] for name in value.array.fields}, value.array)
    if type(value) is StructuredArray:
        fields = [computed_size.as_result(field) for field in value.parts()]
        return value if all(map(operator.is_, fields, value.parts())) else value.of(fields)
    return computed_size.as_result(value)


class _NewRecord(StructuredArray):
    """A record of a result, by the numbers in its fields."""

    def __init__(self, dtype: np.dtype[Any], fields: Mapping[str, Any], source: StructuredArray) -> None:
        super().__init__(dtype, fields)
        self.source = source


def storages_of(value: StructuredArray) -> list[Storage]:
    """The storages of the fields; of those of the array that a record is an element of."""
    source = value.source if isinstance(value, _NewRecord) else value
    return [(field if isinstance(field, Traced) else field.base).view.storage for field in source.fields.values()]


def builder_of(
    value: StructuredArray, make: Callable[[Any], Any], users: Mapping[Storage, set[int]]
) -> Callable[[Any], Any]:
    """How to build the array from those of its fields. UnsupportedError for what shares memory in NumPy.

    `users`: the ids of parts of the result that share each storage.
    """
    is_record = type(value) is _NewRecord
    for storage in storages_of(value):
        if storage.leaf is not None:
            raise UnsupportedError("a structured argument, or a view of one, as a result")
        if len(users[storage]) > 1:
            raise UnsupportedError("a structured array, and a view of it, as results")
    parts = {name: make(field) for name, field in value.fields.items()}

    def build(known: Any) -> Any:
        arrays = {name: part(known) for name, part in parts.items()}
        result = np.empty(np.shape(next(iter(arrays.values()))), value.dtype)
        for name, array in arrays.items():
            result[name] = array
        return result[()] if is_record else result

    return build


RESULT_TYPES = (StructuredArray, _NewRecord)
"""Types of parts of results that `builder_of` builds."""
