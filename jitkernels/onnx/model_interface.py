"""What a model declares: names, types and shapes of its inputs and outputs; and whether arrays fit these."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True, eq=False)
class ValueType:
    """What a model declares about an input or output, in the terms of onnxruntime.

    `type`: such as ``tensor(float)``; `shape`: ints, names of symbolic dimensions, or None for unknown ones; `dtype`:
    NumPy's or ml_dtypes' name of the elements, of tensors whose type is known.
    """

    name: str
    type: str = ""
    shape: tuple[int | str | None, ...] | None = None
    dtype: str = ""

    @property
    def is_fixed(self) -> bool:
        """Whether all sizes are known."""
        return self.shape is not None and all(type(one) is int for one in self.shape)

    def __str__(self) -> str:
        shape = "" if self.shape is None else f" [{', '.join('?' if one is None else str(one) for one in self.shape)}]"
        return f"{self.name}: {self.type or 'any'}{shape}"


@dataclass(frozen=True, eq=False)
class ModelInterface:
    """The name of a model's graph, its inputs and outputs; `defaults`: the inputs that have initializers."""

    name: str
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]
    defaults: frozenset[str]

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs that a call passes: those without an initializer."""
        return tuple(one.name for one in self.inputs if one.name not in self.defaults)

    @property
    def output_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.outputs)

    def as_json(self) -> dict[str, Any]:
        """All fields as values of JSON."""
        return {**asdict(self), "defaults": sorted(self.defaults)}

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> "ModelInterface":
        """The interface that `as_json` made."""
        inputs, outputs = (tuple(map(_value_type, stored[key])) for key in ("inputs", "outputs"))
        return cls(stored["name"], inputs, outputs, frozenset(stored["defaults"]))


def _value_type(stored: Mapping[str, Any]) -> ValueType:
    shape = stored["shape"]
    return ValueType(stored["name"], stored["type"], None if shape is None else tuple(shape), stored["dtype"])


def checked_input(declared: ValueType, value: Any) -> Any:
    """An input as an array of the declared type, rank and fixed sizes."""
    if not declared.type.startswith("tensor("):
        return plain(value) if value is not None else None
    array = np.asarray(value)
    is_string = declared.dtype == "object" and array.dtype.kind in "OUST"
    if array.dtype.name != declared.dtype and declared.dtype and not is_string:
        raise ArgumentTypeError(f"{declared.name}: expected an array of {declared.dtype}, got one of {array.dtype}")
    shape = declared.shape
    if shape is not None and (
        len(shape) != array.ndim
        or any(type(one) is int and one != size for one, size in zip(shape, array.shape, strict=True))
    ):
        raise ArgumentError(f"{declared.name}: expected the shape {list(shape)}, got {list(array.shape)}")
    return array.astype(object) if is_string and array.dtype != object else _readable(array)


def _readable(array: Any) -> Any:
    """The array, or a copy where compiled code does not read it: another byte order, elements at odd addresses."""
    is_even = array.flags.aligned and not any(step % array.itemsize for step in array.strides if array.itemsize)
    return array if is_even and array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def plain(value: Any) -> Any:
    """A value as callers get it: an array of NumPy's own type."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value if value is None else np.asarray(value)
