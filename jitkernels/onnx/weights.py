"""`Weights`: the constants of a graph by name; large ones are read or computed lazily.

A model keeps no large array that compiled code does not read: filters are packed once, and what they were packed from
is read again from the model where another shape of image needs it.
"""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NamedTuple

from jitkernels.compiler.capture.static_arrays import Frozen, Origin
from jitkernels.onnx.values import constant


class LazyArray(NamedTuple):
    """An array that is not there yet: its shape and dtype, and the function that makes it."""

    shape: tuple[int, ...]
    dtype: Any
    make: Callable[[], Any]


class Weights(MutableMapping[str, Any]):
    """Arrays by name. An item may be set to a `LazyArray`, which each read evaluates again."""

    def __init__(self) -> None:
        self._arrays: dict[str, Any] = {}
        self._origins: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        value = self._arrays[name]
        return self._marked(name, constant(value.make(), value.dtype)) if type(value) is LazyArray else value

    def __setitem__(self, name: str, value: Any) -> None:
        self._origins[name] = object()
        if value is not None and type(value) not in (list, LazyArray):
            value = self._marked(name, constant(value))
        self._arrays[name] = value

    def _marked(self, name: str, array: Any) -> Any:
        """An array that code shares with all others that this name gave."""
        if type(array) is Frozen:
            array.origin = Origin.of(array, self._origins[name])
        return array

    def __delitem__(self, name: str) -> None:
        del self._arrays[name], self._origins[name]

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def copy(self) -> "Weights":
        """Another mapping of the same arrays."""
        other = Weights()
        other._arrays, other._origins = dict(self._arrays), dict(self._origins)
        return other

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, which is not read for this."""
        return tuple(self._arrays[name].shape)

    def dtype(self, name: str) -> Any:
        """The dtype of an array, which is not read for this."""
        return self._arrays[name].dtype


class Values(dict[str, Any]):
    """The values of names while nodes run; those of constants are read when a node asks for them."""

    def __init__(self, constants: Any, known: Any) -> None:
        super().__init__(known)
        self._constants = constants

    def __missing__(self, name: str) -> Any:
        return self._constants[name]
