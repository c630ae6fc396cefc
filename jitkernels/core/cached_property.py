"""Properties that are computed once and kept, without a lock."""

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class kept_property(Generic[T]):  # noqa: N801  # used like functools.cached_property
    """A property that is computed when first asked for, and kept: `functools.cached_property` without a lock.

    Before Python 3.12 that has one lock for all that there are. It would stand outside the order of ours
    (`jitkernels.locks`): whoever computes a value takes `making`, and whoever has that taken asks for values.
    Two threads may compute the same value; the first stays.
    """

    def __init__(self, func: Callable[[Any], T]) -> None:
        self.func = func
        self.__doc__ = func.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self.func(instance))
