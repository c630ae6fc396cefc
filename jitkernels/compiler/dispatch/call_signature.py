"""The signature of a compiled function: binds equivalent calls to one canonical argument order."""

import inspect
from typing import Any

import numpy as np

from jitkernels.compiler.capture.free_variables import names_of
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown


class Signature:
    """The parameters of a function; `ordered` canonicalizes the arguments of a call."""

    def __init__(self, function: Any, static_argnames: tuple[str, ...]) -> None:
        self.function, self._static_argnames = function, static_argnames
        self._read()

    def _read(self) -> None:
        """Read the signature. It runs again when the defaults or the code change."""
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
        self.names = tuple(parameter.name for parameter in parameters if parameter.kind in ordinary)
        self.is_plain = all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        self.defaults = {
            parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty
        }
        known = {*self.signature.parameters, *_referred(function)}
        unknown = [name for name in static_argnames if name not in known]
        if unknown:
            raise ArgumentError(
                "static_argnames: expected names of parameters of the function, or of what it refers to, got "
                f"{', '.join(unknown)}"
            )
        self.statics = frozenset(i for i, name in enumerate(self.names) if name in static_argnames)

    def takes(self, name: str) -> bool:
        """Whether the function accepts the keyword `name`."""
        if self.signature is None:
            return True
        kinds = {parameter.kind for parameter in self.signature.parameters.values()}
        return name in self.signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds

    def ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional arguments with defaults filled in, and keyword arguments. Raises TypeError as the call would."""
        if any(
            current is not previous
            for current, previous in zip(_defaults_of(self.function), self._defaults, strict=True)
        ):
            self._read()
        if self.signature is None:
            return args, kwargs
        if self.is_plain and not kwargs and len(args) == len(self.names):
            return args, kwargs
        bound = self.signature.bind(*args, **kwargs)
        if not isinstance(self.function, np.ufunc):  # its parameters are mutually exclusive, even as None
            bound.apply_defaults()
        return bound.args, bound.kwargs


def _referred(function: Any) -> tuple[str, ...]:
    """The globals and free variables that a function refers to."""
    code = getattr(function, "__code__", None)
    return (*names_of(code).names, *code.co_freevars) if code is not None else ()


def _defaults_of(function: Any) -> tuple[Any, ...]:
    """The current defaults of a function and its code, which determines its parameters."""
    return tuple(getattr(function, name, None) for name in ("__defaults__", "__kwdefaults__", "__code__"))


def names_in(static_argnames: Any) -> tuple[str, ...]:
    """Normalize `static_argnames` to a tuple. Raises ArgumentTypeError for anything but names."""
    names = (static_argnames,) if isinstance(static_argnames, str) else static_argnames
    if not isinstance(names, tuple | list | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(f"static_argnames: expected a name or a tuple of names, got {shown(static_argnames)}")
    return tuple(names)
