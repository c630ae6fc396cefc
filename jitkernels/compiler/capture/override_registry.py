"""What traced arrays can do: filled by the modules that say how, looked up by the arrays."""

from collections.abc import Callable
from typing import Any

SERVICES: dict[str, Callable[..., Any]] = {}
"""What modules do for arrays and ints that these themselves import nothing of."""
TABLE: dict[Any, Callable[..., Any]] = {}
"""NumPy's functions, and what each does with traced arrays."""
COMPOSED: dict[Any, Callable[..., Any]] = {}
"""Those that are something else in functions that are differentiated."""
METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays."""


def serves(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a service."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        SERVICES[name] = implementation
        return implementation

    return enter


def composes(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function stand for one of NumPy's where derivatives are asked for."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED[function] = implementation
        return implementation

    return enter


def implements(*functions: Any, methods: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function stand for NumPy's functions, and for methods of arrays."""

    def enter(implementation: Callable[..., Any]) -> Callable[..., Any]:
        TABLE.update(dict.fromkeys(functions, implementation))
        METHODS.update(dict.fromkeys(methods.split(), implementation))
        return implementation

    return enter
