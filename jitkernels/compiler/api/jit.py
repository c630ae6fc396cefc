"""`jit`: traces a NumPy function for each new structure and pattern of arguments, and runs it as compiled code."""

import functools
import types
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, overload

import numpy as np

from jitkernels.compiler.api import fallback_policy, out_argument
from jitkernels.compiler.api.cold_call import PythonCalls
from jitkernels.compiler.capture import register_overrides as _filled  # noqa: F401  # the tables of what traced arrays do
from jitkernels.compiler.capture.numba_dispatchers import as_python
from jitkernels.compiler.capture.pytree import recompile_limit
from jitkernels.compiler.capture.pytree.flatten import Flattener, constant, flattened, patterns
from jitkernels.compiler.dispatch import dispatch_chain, fp_warnings, python_entries
from jitkernels.compiler.dispatch import specialization as specialisations
from jitkernels.compiler.dispatch.call_signature import Signature, names_in
from jitkernels.compiler.dispatch.specialization import MANY_ELEMENTS, Specialisation
from jitkernels.compiler.ir.builder import UnknownError
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.core.fork_locks import making
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown
from jitkernels.runtime import errstate, vectorcall, workspace_allocator

if TYPE_CHECKING:
    from pathlib import Path

    from jitkernels.compiler.diagnostics.explain import FunctionExplanation, JitStats
    from jitkernels.compiler.diagnostics.graph_viz import Drawing
    from jitkernels.compiler.export.manifest import Description
    from jitkernels.selection.explain_selection import Explanation

P = ParamSpec("P")
R = TypeVar("R")
Out = TypeVar("Out", bound="np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], ...]")
"""The ``out`` arrays, which a call returns."""
MOST_KEYS = 4096
MOST_OF_A_KEY = 32


class _Unlinked:
    """The base class where no compiled entries exist and Python serves all calls."""


_base: Any = dispatch_chain.base or _Unlinked


class JitFunction(_base, PythonCalls, Generic[P, R]):  # type: ignore[misc]  # made when this is imported
    """A compiled function; its results equal those of the plain function."""

    __jitkernels_traced__ = staticmethod(lambda self: self.__wrapped__)
    _is_plain: ClassVar[bool] = True
    """Whether a call of the plain function is a valid fallback."""

    def __init__(self, function: Callable[P, R], static_argnames: tuple[str, ...], config: JitConfig) -> None:
        functools.update_wrapper(self, as_python(function))
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.__wrapped__ = function
        self.config, self.static_argnames = config, static_argnames
        self._signature = Signature(function, static_argnames)
        self._specialisations: dict[Any, list[Specialisation]] = {}
        self._plain_calls: dict[str, int] = {}
        self._varied, self._hits, self._entries = recompile_limit.Varied(), 0, python_entries.PythonEntries()
        self._takes_out = self._signature.takes("out")
        plain = function if self._is_plain else None
        self._links = dispatch_chain.Links(self, self._from_python, plain, takes_out=self._takes_out)

    if _base is _Unlinked or TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: None, **kwargs: Any) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Out, **kwargs: Any) -> Out: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self._call(args, kwargs)

    def _from_python(self, *args: Any, **kwargs: Any) -> Any:
        """Serve a call that no compiled entry accepts."""
        return self._call(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__wrapped__.__qualname__)

    def __repr__(self) -> str:
        return f"<jit {self.__wrapped__!r}>"

    def configured(self, static_argnames: tuple[str, ...], config: JitConfig) -> "JitFunction[P, R]":
        """The same function with other static arguments and another config."""
        return JitFunction(self.__wrapped__, static_argnames, config)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Serve one call from Python: find or compile the code for these arguments, or fall back."""
        out = None
        if not self._takes_out and "out" in kwargs:
            kwargs = dict(kwargs)
            out = kwargs.pop("out")
        if errstate.numpy_raises_or_calls():
            self._entries.note(python_entries.ERRORS)
            return self._plain(args, kwargs, out)
        began = perf_counter()
        found, leaves, values = self._found(args, kwargs)
        if found is None or found.graph is None:
            self._entries.note(f"left to NumPy: {self._reason(found)}")
            with fallback_policy.Left(self, self._reason(found), has_raised=found is not None and found.has_raised):
                if found is None or found.always_falls_back([*self._specialisations.values()]):
                    self._links.enter_plain(self.__wrapped__, args, kwargs, out, MANY_ELEMENTS)
                return self._plain(args, kwargs, out)
        if found.written and not found.may_write(leaves):
            self._entries.note(python_entries.SHARED)
            return self._plain(args, kwargs, out)
        if found.alarm is not None and (plain := found.alarm.before(args, kwargs)):
            return plain[0] if out is None else out_argument.given_to(out, plain[0])
        found.calls += 1
        largest = max((leaf.size for leaf in leaves if type(leaf) is np.ndarray), default=0)
        if largest <= found.max_plain_elements_at_once and not self.config.requires_python_calls:
            self._entries.note(python_entries.SMALL)
            self._links.enter_plain(self.__wrapped__, args, kwargs, out, found.max_plain_elements_at_once, found)
            return self._plain(args, kwargs, out)
        if self._link(found, args, kwargs) or found.link_requested_symbols():
            # The new link serves the call: it precedes this function in the chain.
            self._entries.note(python_entries.FIRST)
            linked: Any = self
            return linked(*args, **kwargs) if out is None else linked(*args, **kwargs, out=out)
        self._entries.note(found.entry_reason or python_entries.OTHERS)
        if self.config.requires_python_calls:
            return self._computed(found, leaves, values, args, kwargs, out)
        if largest <= found.max_plain_elements:
            self._links.enter_plain(self.__wrapped__, args, kwargs, out, found.max_plain_elements, found)
            return self._plain(args, kwargs, out)
        return self._sooner(began, found, leaves, values, args, kwargs, out)

    def _found(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation | None, list[Any], Any]:
        """The specialization for a call, the leaves of the arguments, and the values of the symbols."""
        try:
            structure, leaves = self._structure(args, kwargs)
            key = structure, patterns(leaves)
            kept = self._specialisations.get(key)
        except (UnknownError, TypeError) as error:
            self._refused(str(error))
            return None, [], None
        for one in kept or ():
            values = one.values(leaves)
            if values is not None:
                self._hits += 1
                return one, leaves, values
        with making:
            return self._made(key, leaves)

    def _refused(self, reason: str) -> None:
        """Record why a call falls back to NumPy."""
        self._plain_calls[reason] = self._plain_calls.pop(reason, 0) + 1

    def _reason(self, found: Specialisation | None) -> str:
        """Why a call falls back to NumPy."""
        return next(reversed(self._plain_calls)) if found is None else found.reason

    def _ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._signature.ordered(args, kwargs)

    def _linked_function(self) -> Any:
        """The function whose calls the compiled entries serve."""
        return self.__jitkernels_traced__(self)

    def _traced_part(self, flattener: Flattener) -> Any:
        """The structure of the function: its free variables and globals."""
        function: Any = as_python(self.__wrapped__)
        take = flattener.function if type(function) is types.FunctionType else flattener.flatten
        return take(function)

    def _structure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        positional, named = self._ordered(args, kwargs)
        statics = self._signature.statics

        def taken(flattener: Flattener) -> Any:
            part, take = self._traced_part(flattener), flattener.argument
            parts = [constant(one) if i in statics else take(one) for i, one in enumerate(positional)]
            named_parts = [constant(one) if name in self.static_argnames else take(one) for name, one in named.items()]
            return part, (tuple, tuple(parts)), (dict, tuple(named), tuple(named_parts))

        return flattened(self.static_argnames, taken)

    def _made(self, key: Any, leaves: list[Any]) -> tuple[Specialisation | None, list[Any], Any]:
        candidates = self._specialisations.get(key, [])
        for specialization in candidates:
            values = specialization.values(leaves)
            if values is not None:
                return specialization, leaves, values
        if len(candidates) >= MOST_OF_A_KEY:
            self._refused(f"the function is made anew for each number it is given: {len(candidates)} are enough")
            return None, leaves, None
        if not candidates and self._varied.are_enough(key):
            self._refused(recompile_limit.REASON)
            return None, leaves, None
        new = specialisations.made(self.__wrapped__, key[0], leaves, self.config)
        new.alarm = fp_warnings.of(self.__wrapped__, new, lambda *given: self._structure(*given)[1])
        values = new.values(leaves)
        assert values is not None, "a trace whose guards hold for what was traced"
        if key not in self._specialisations and len(self._specialisations) >= MOST_KEYS:
            self._specialisations.pop(next(iter(self._specialisations)))
        self._specialisations[key] = [new, *candidates]
        return new, leaves, values

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> "FunctionExplanation":
        """Explain a call with these arguments: compile it, but do not run it."""
        from jitkernels.compiler.diagnostics.explain import FunctionExplanation, argument_names, explanation

        found, structure = self._looked_at(args, kwargs)
        if isinstance(found, str):
            return FunctionExplanation(self.__name__, (), {}, (), found, 0, 0)
        names = argument_names(structure, self._signature.names)
        reason = found.entry_reason if found.graph is not None else ""
        if found.graph is not None and (len(args), tuple(kwargs)) not in found.direct:
            reason = self._why_python() or self._why_not_entered(found, args, kwargs)
        return explanation(self.__name__, found, names, reason)

    def source(self, *args: Any, backend: str = "numba", **kwargs: Any) -> str:
        """The code of such a call, or all that was made: Python loops, or LLVM IR (``native``); see `printing`."""
        from jitkernels.compiler.diagnostics.source_printer import source

        return source(self, args, kwargs, backend)

    def _names(self, args: Any, kwargs: Any) -> list[str]:
        """The names of the arrays and numbers in the arguments."""
        from jitkernels.compiler.diagnostics.explain import argument_names

        return argument_names(self._structure(args, kwargs)[0], self._signature.names)

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> "Drawing":
        """Draw the graph of a call with these arguments. Raises NotUsableError if it falls back to NumPy."""
        from jitkernels.compiler.diagnostics.graph_viz import drawn

        found, structure = self._looked_at(args, kwargs)
        return drawn(self.__name__, found, [] if structure is None else self._names(args, kwargs))

    def tune(self, *args: Any, **kwargs: Any) -> "tuple[Explanation, ...]":
        """Measure compilation variants for calls with these arguments for ``seconds=1.0``, and record the fastest.

        Without arguments it tunes the calls that ``profile=True`` has counted. Later compilations use the recorded
        variant, in this process and in others; existing code is discarded. Returns the measurements. Raises
        NotUsableError if calls fall back to NumPy or measurements would not be used, ArgumentError for a wrong time.
        """
        from jitkernels.compiler.diagnostics import autotune

        return autotune.tune(self, args, kwargs)

    def export(self, directory: "Path | str", /, *args: P.args, **kwargs: P.kwargs) -> "Description":
        """Export a call with these arguments as a bundle: object file, C header, weights, examples in C and Python.

        The bundle serves these dtypes and shapes on processors like this one with one thread, and needs only the C
        library. Globals, free variables, attributes and ints become its weights. Returns the bundle's description.
        Raises BundleError if a part falls back to NumPy, OSError if files cannot be written.
        """
        from jitkernels.compiler.export.export_function import exported

        def taken_apart() -> tuple[Any, list[Any], list[str]]:
            return *self._structure(args, kwargs), self._names(args, kwargs)

        return exported(directory, self.__wrapped__, taken_apart, self.config, self.static_argnames)

    def _looked_at(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        kwargs = {name: one for name, one in kwargs.items() if name != "out" or self._takes_out}
        found, _, _ = self._found(args, kwargs)
        return (self._reason(None), None) if found is None else (found, self._structure(args, kwargs)[0])

    def stats(self) -> "JitStats":
        """Statistics of all specializations."""
        from jitkernels.compiler.diagnostics.explain import numbers

        made = [one for kept in list(self._specialisations.values()) for one in kept]
        return numbers(made, self._hits, self._entries.told)

    def release(self) -> None:
        """Discard all code of the function, and free the pooled workspaces (of all functions)."""
        workspace_allocator.release()
        with making:
            self._specialisations, self._varied = {}, recompile_limit.Varied()
            self._unlink()

    def _unlink(self) -> None:
        self._links.clear()
        for one in [one for kept in self._specialisations.values() for one in kept]:
            one.direct = {}


if _base is not _Unlinked:
    vectorcall.prepare(JitFunction)


@overload
def jit(function: Callable[P, R], /) -> JitFunction[P, R]: ...
@overload
def jit(
    function: Callable[P, R],
    /,
    *,
    static_argnames: str | tuple[str, ...] | list[str] = (),
    config: JitConfig | None = None,
    **options: Any,
) -> JitFunction[P, R]: ...
@overload
def jit(
    *, static_argnames: str | tuple[str, ...] | list[str] = (), config: JitConfig | None = None, **options: Any
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    function: Any = None,
    /,
    *,
    static_argnames: str | tuple[str, ...] | list[str] = (),
    config: JitConfig | None = None,
    **options: Any,
) -> Any:
    """Compile a NumPy function: ``@jit``, or ``@jit(...)`` with these keywords and the fields of `JitConfig`.

    `static_argnames`: parameters, or names that the function refers to, whose values are constants of the code; each
    new value recompiles. Arrays among them must not be changed in place: the code reads them once, when compiled.

    Where compiled code raises floating-point flags, the plain function runs once more to issue NumPy's warnings, less
    often if they are not new. Code that overwrites arguments warns of arithmetic only. Where `numpy.errstate` requests
    more than a warning, calls fall back to NumPy.
    """
    names = names_in(static_argnames)
    if config is not None and options:
        raise ArgumentError(f"config: expected no {', '.join(options)} beside it")
    try:
        chosen = config if config is not None else JitConfig(**options)
    except TypeError as error:
        raise ArgumentTypeError(f"jit: {error}") from None
    if function is None:
        return lambda one: _compiled(one, names, chosen)
    return _compiled(function, names, chosen)


def _compiled(function: Any, names: tuple[str, ...], config: JitConfig) -> Any:
    if isinstance(function, JitFunction):
        return function.configured(names, config)
    if not callable(function):
        raise ArgumentTypeError(f"function: expected a function, got {shown(function)}")
    return JitFunction(function, names, config)
