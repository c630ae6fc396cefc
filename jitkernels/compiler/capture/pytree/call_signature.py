"""The signature of a compiled function: binds the arguments of a call to parameters, and flattens them into leaves."""

import inspect
import operator
import types
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.capture.free_variables import names_of
from jitkernels.compiler.capture.numba_dispatchers import as_python
from jitkernels.compiler.capture.pytree.class_guards import ClassGuards, guards_of
from jitkernels.compiler.capture.pytree.flatten import Flattener, constant, pattern_of, short_extent
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown


class FlatCall(NamedTuple):
    """The arguments of one call in each of their forms, which all stages of its compilation share.

    `args` and `kwargs` as the caller wrote them; `positional` and `named` bound to parameters, defaults filled in;
    `structure` and `leaves` flattened, those of the function's free variables first; `key` of the specialization.
    `locks`: how to acquire and release those of random generators, which a run of compiled code holds. `classes`: what
    is guarded of classes, part of the key.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    positional: tuple[Any, ...]
    named: dict[str, Any]
    structure: Any
    leaves: list[Any]
    key: Any
    locks: list[tuple[Any, Any]]
    classes: ClassGuards | None

    @property
    def form(self) -> tuple[int, tuple[str, ...]]:
        """The number of positional arguments, and the names of the others."""
        return len(self.args), tuple(self.kwargs)


class CallSignature:
    """The parameters of a function. `target`: what is traced in its place, such as its derivative.

    Without `binds` arguments stay as the caller wrote them, since the target has other parameters.
    """

    def __init__(
        self, function: Any, static_argnames: tuple[str, ...], target: Any = None, *, binds: bool = True
    ) -> None:
        self.function, self.static_argnames = function, static_argnames
        self.target = as_python(function) if target is None else target
        self._binds = binds
        self._read()

    def _read(self) -> None:
        """Read the signature. It runs again when the defaults or the code change."""
        self._defaults = _defaults_of(self.function)
        self.signature: inspect.Signature | None = None
        try:
            self.signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            self.names: tuple[str, ...] = ()
            self.statics: frozenset[int] = frozenset()
            self._is_plain = False
            return
        parameters = self.signature.parameters.values()
        ordinary = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.names = tuple(parameter.name for parameter in parameters if parameter.kind in ordinary)
        self._is_plain = all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
        known = {*self.signature.parameters, *_free_names(self.function)}
        unknown = [name for name in self.static_argnames if name not in known]
        if unknown:
            raise ArgumentError(
                "static_argnames: expected names of parameters of the function, or of what it refers to, got "
                f"{', '.join(unknown)}"
            )
        self.statics = frozenset(i for i, name in enumerate(self.names) if name in self.static_argnames)

    def takes(self, name: str) -> bool:
        """Whether the function accepts the keyword `name`."""
        if self.signature is None:
            return True
        kinds = {parameter.kind for parameter in self.signature.parameters.values()}
        return name in self.signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds

    def accepts_no_arguments(self) -> bool:
        """Whether a call without arguments is one, as far as the signature says."""
        if not self._binds or self.signature is None:
            return False
        try:
            self.signature.bind()
        except TypeError:
            return False
        return True

    def fits(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a call with these arguments binds them to the parameters, as far as these are known."""
        if self.signature is None:
            return True
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError:
            return False
        return True

    def flatten(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FlatCall:
        """Bind and flatten the arguments of a call, with the free variables and globals of the function.

        Raises TypeError as the call would, and UnsupportedError for arguments that cannot be traced.
        """
        if any(map(operator.is_not, _defaults_of(self.function), self._defaults)):
            self._read()
        positional, named = args, kwargs
        is_bound = self._is_plain and not kwargs and len(args) == len(self.names)
        if self._binds and self.signature is not None and not is_bound:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"the arguments do not fit the parameters: {error}") from None
            if not isinstance(self.function, np.ufunc):  # its parameters are mutually exclusive, even as None
                bound.apply_defaults()
            positional, named = bound.args, bound.kwargs
        statics, static_names, target = self.statics, self.static_argnames, self.target
        flattener = Flattener(static_names)
        while True:
            take = flattener.argument
            function = flattener.function(target) if type(target) is types.FunctionType else flattener.flatten(target)
            parts = [constant(value) if i in statics else take(value) for i, value in enumerate(positional)]
            named_parts = [constant(value) if name in static_names else take(value) for name, value in named.items()]
            if not flattener.names.is_late():
                break
            flattener = Flattener(static_names, flattener.names)  # later arguments add names for earlier ones
        structure = function, (tuple, tuple(parts)), (dict, tuple(named), tuple(named_parts))
        leaves = flattener.leaves
        marks = {extent: -extent for leaf in leaves if (extent := short_extent(leaf))}
        patterns = tuple([pattern_of(leaf, marks) for leaf in leaves])
        classes = guards_of([*flattener.classes], flattener.names.all) if flattener.classes else None
        key = structure, patterns if classes is None else (*patterns, classes)
        return FlatCall(args, kwargs, positional, named, structure, leaves, key, flattener.locks, classes)


def _free_names(function: Any) -> tuple[str, ...]:
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
