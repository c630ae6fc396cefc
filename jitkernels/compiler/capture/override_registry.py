"""Override registry: implementations of NumPy functions, methods and operators for traced arrays."""

from collections.abc import Callable
from typing import Any

SERVICES: dict[str, Callable[..., Any]] = {}
"""Implementations by name, for the proxies of arrays and ints, which cannot import the implementing modules."""
TABLE: dict[Any, Callable[..., Any]] = {}
"""NumPy functions, and their implementations for traced arrays."""
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {}
"""NumPy functions, and their decompositions for derivatives."""
METHODS: dict[str, Callable[..., Any]] = {}
"""Array methods, and their implementations."""


def serves(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register an implementation in `SERVICES`."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        SERVICES[name] = implementation
        return implementation

    return enter


def decomposes(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a decomposition of a NumPy function for derivatives."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        DECOMPOSITIONS[function] = implementation
        return implementation

    return enter


def overrides(*functions: Any, methods: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register an implementation of NumPy functions and array methods."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.update(dict.fromkeys(functions, implementation))
        METHODS.update(dict.fromkeys(methods.split(), implementation))
        return implementation

    return enter
