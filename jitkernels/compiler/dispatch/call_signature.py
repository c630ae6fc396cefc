"""The parameters of a compiled function: calls that mean the same must look the same."""

import inspect
from typing import Any

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError, shown
from jitkernels.frontends.captured import names_of


class Signature:
    """The parameters of a function: brings the arguments of a call into one order."""

    def __init__(self, function: Any, static_argnames: tuple[str, ...]) -> None:
        self.function, self._static_argnames = function, static_argnames
        self._read()

    def _read(self) -> None:
        """Look at the function, whose defaults may have become others."""
        function, static_argnames = self.function, self._static_argnames
        self._defaults = _defaults_of(function)
        self.signature: inspect.Signature | None = None
        try:
            self.signature = inspect.signature(function)
        except (TypeError, ValueError):
            self.names: tuple[str, ...] = ()
            self.statics: frozenset[int] = frozenset()
            return
        parameters = self.signature.parameters.values()
        ordinary = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.names = tuple(one.name for one in parameters if one.kind in ordinary)
        self.is_plain = all(one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for one in parameters)
        self.defaults = {one.name: one.default for one in parameters if one.default is not one.empty}
        known = {*self.signature.parameters, *_referred(function)}
        unknown = [name for name in static_argnames if name not in known]
        if unknown:
            raise ArgumentError(
                "static_argnames: expected names of parameters of the function, or of what it refers to, got "
                f"{', '.join(unknown)}"
            )
        self.statics = frozenset(i for i, name in enumerate(self.names) if name in static_argnames)

    def takes(self, name: str) -> bool:
        """Whether a keyword is one of the function's own."""
        if self.signature is None:
            return True
        kinds = {one.kind for one in self.signature.parameters.values()}
        return name in self.signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds

    def ordered(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments, defaults among them, and keyword ones. Raises TypeError as the call would."""
        if any(
            one is not other for one, other in zip(_defaults_of(self.function), self._defaults, strict=True)
        ):
            self._read()
        if self.signature is None:
            return args, kwargs
        if self.is_plain and not kwargs and len(args) == len(self.names):
            return args, kwargs
        bound = self.signature.bind(*args, **kwargs)
        if not isinstance(self.function, np.ufunc):  # whose parameters exclude one another, None or not
            bound.apply_defaults()
        return bound.args, bound.kwargs


def _referred(function: Any) -> tuple[str, ...]:
    """The globals and the variables around it that a function refers to."""
    code = getattr(function, "__code__", None)
    return (*names_of(code).names, *code.co_freevars) if code is not None else ()


def _defaults_of(function: Any) -> tuple[Any, ...]:
    """What a function has as defaults now, and its code, which says what its parameters are."""
    return tuple(getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__", "__code__"))


def names_in(given: Any) -> tuple[str, ...]:
    """Names of static arguments. Raises ArgumentTypeError for what is none."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, tuple | list | set | frozenset) or not all(
        isinstance(one, str) for one in names
    ):
        raise ArgumentTypeError(f"static_argnames: expected a name or a tuple of names, got {shown(given)}")
    return tuple(names)
