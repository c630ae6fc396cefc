"""Caches without a lock: properties computed once per object, and analyses computed once per code object."""

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")
R = TypeVar("R")


class unlocked_cached_property(Generic[T]):  # noqa: N801  # used like functools.cached_property
    """A property computed on first access and cached: `functools.cached_property` without a lock.

    Before Python 3.12 `functools.cached_property` has one global lock. It would break the lock order of
    `jitkernels.core.fork_locks`: code that computes a value takes `build_lock`, and code that holds it reads cached
    properties. Two threads may compute the same value; the first stays.
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


def cached_per_code(make: Callable[..., R]) -> Callable[..., R]:
    """Cache a function of a code object and hashable arguments until the code object is freed.

    Code objects are compared by identity: equal ones may come from two files. The cached value must not refer to the
    code object itself.
    """
    entries: dict[int, tuple[weakref.ref[types.CodeType], dict[Any, R]]] = {}

    @functools.wraps(make)
    def cached(code: types.CodeType, *others: Any) -> R:
        entry = entries.get(id(code))
        if entry is None or entry[0]() is not code:
            key = id(code)

            def forget(dead: "weakref.ref[types.CodeType]") -> None:
                last = entries.get(key)
                if last is not None and last[0] is dead:
                    del entries[key]

            entry = entries[key] = weakref.ref(code, forget), {}
        values = entry[1]
        if others not in values:
            values[others] = make(code, *others)
        return values[others]

    exposed: Any = cached
    exposed.entries = entries
    return cached
