"""Functions that NumPy computes, as nodes call them: which of their arguments are the node's inputs."""

import inspect
from typing import Any

import numpy as np

from jitkernels.graph.construct import UnknownError


class Hole:
    """Where an array goes."""

    def __init__(self, number: int) -> None:
        self.number = number


class Called:
    """A call of a function with arrays put where they belong; what it gives is as it was when it was traced."""

    def __init__(self, function: Any, arguments: Any, keywords: Any, kinds: list[Any]) -> None:
        self.function, self.arguments, self.keywords, self.kinds = function, arguments, keywords, kinds
        self.expected: tuple[tuple[str, tuple[int, ...]], ...] = ()
        self.__name__ = getattr(function, "__name__", "function")

    def __call__(self, *arrays: Any) -> Any:
        given = [
            array if kind == "array" else array[()] if kind == "scalar" else kind(array)
            for array, kind in zip(map(np.asarray, arrays), self.kinds, strict=True)
        ]
        found = self.function(*_filled(self.arguments, given), **_filled(self.keywords, given))
        if self.expected and described(found) != self.expected:
            raise UnknownError(f"numpy.{self.__name__} gave something else than when it was traced")
        return found

    def parameters(self) -> dict[str, Any]:
        """The arguments by their names, `Hole`s where inputs go."""
        return dict(inspect.signature(self.function).bind(*self.arguments, **self.keywords).arguments)


def _filled(value: Any, arrays: list[Any]) -> Any:
    if type(value) is Hole:
        return arrays[value.number]
    if isinstance(value, tuple | list):
        return type(value)(_filled(one, arrays) for one in value)
    if isinstance(value, dict):
        return {name: _filled(one, arrays) for name, one in value.items()}
    return value


def described(found: Any) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Dtypes and shapes of what a call gives."""
    listed = found if isinstance(found, tuple) else (found,)
    return tuple((one.dtype.name, one.shape) for one in listed)
