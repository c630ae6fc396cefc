"""The rules by which kernels are differentiated as kernels: functions of the modules in `vjp`, registered by schema."""

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Schema = type[Any]
Cotangents = Callable[..., Sequence[Any]]


class Rule(NamedTuple):
    """The derivative of a kernel.

    `cotangents` takes the attr, the cotangent of the result, and the inputs, and returns the cotangent of each input.
    `expand` takes the attr, the everyday function, and its arguments by name; it returns the result by simpler calls of
    it and NumPy, or None where `cotangents` holds for the call as it is.
    """

    cotangents: Cotangents
    expand: Callable[..., Any]


_rules: dict[Schema, Rule] = {}


def _expand_nothing(attr: Any, function: Any, values: Mapping[str, Any]) -> None:
    """The rule holds for all calls."""


def vjp_of(schema: Schema, expand: Callable[..., Any] = _expand_nothing) -> Callable[[Cotangents], Cotangents]:
    """Register a function as the `cotangents` of the rule of a schema."""

    def register(cotangents: Cotangents) -> Cotangents:
        _rules[schema] = Rule(cotangents, expand)
        return cotangents

    return register


@functools.cache
def rules() -> Mapping[Schema, Rule]:
    """All rules by schema; imports the modules that register them."""
    from jitkernels.compiler.capture.kernels import vjp

    for module in pkgutil.iter_modules(vjp.__path__):
        importlib.import_module(f"{vjp.__name__}.{module.name}")
    return _rules
