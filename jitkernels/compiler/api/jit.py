"""`jit`: traces a NumPy function for each new structure and pattern of arguments, and runs it as compiled code."""

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload

import numpy as np

from jitkernels.compiler.api import foreign_arguments, function_pickle
from jitkernels.compiler.api.cold_call import ColdCalls
from jitkernels.compiler.api.graph_breaks import GraphBreaks
from jitkernels.compiler.capture import register_overrides as _overrides  # noqa: F401  # fills the override registry
from jitkernels.compiler.capture.free_variables import names_of
from jitkernels.compiler.capture.numba_dispatchers import as_python
from jitkernels.compiler.capture.pytree.call_signature import CallSignature, names_in
from jitkernels.compiler.diagnostics.explain_breaks import DividedExplanation
from jitkernels.compiler.dispatch import dispatch_chain
from jitkernels.compiler.export.function_token import token_of
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown
from jitkernels.runtime import vectorcall
from jitkernels.runtime.loading import build_ahead

if TYPE_CHECKING:
    from pathlib import Path

    from jitkernels.compiler.capture.pytree.call_signature import FlatCall
    from jitkernels.compiler.diagnostics.explain import FunctionExplanation, JitStats
    from jitkernels.compiler.diagnostics.graph_viz import Drawing
    from jitkernels.compiler.dispatch.specialization import Specialization
    from jitkernels.compiler.export.manifest import Description
    from jitkernels.selection.explain_selection import Explanation

P = ParamSpec("P")
R = TypeVar("R")
Out = TypeVar("Out", bound="np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], ...]")
"""The ``out`` arrays, which a call returns."""


class _Unlinked:
    """The base class where no compiled entries exist and Python serves all calls."""


_base: Any = dispatch_chain.base or _Unlinked


class JitFunction(_base, ColdCalls, Generic[P, R]):  # type: ignore[misc]  # made when this is imported
    """A compiled function; its results equal those of the plain function."""

    __jitkernels_traced__ = staticmethod(lambda self: self.__wrapped__)
    pickle_state: "function_pickle.PickleState | None" = None

    def __init__(
        self,
        function: Callable[P, R],
        static_argnames: tuple[str, ...],
        config: JitConfig,
        signature: CallSignature | None = None,
    ) -> None:
        functools.update_wrapper(self, as_python(function))
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.static_argnames = static_argnames
        ColdCalls.__init__(self, function, signature or CallSignature(function, static_argnames), config)
        if self._is_plain and type(function) is types.FunctionType:
            self._breaks = GraphBreaks(function, self._part)

    def _part(self, plain: types.FunctionType, traced: types.FunctionType) -> "JitFunction[..., Any]":
        """A part of this function as a compiled function."""
        code = plain.__code__
        known = {*code.co_varnames[: code.co_argcount], *code.co_freevars, *names_of(code).names}
        statics = tuple(name for name in self.static_argnames if name in known)
        part: JitFunction[..., Any] = JitFunction(plain, statics, self.config, CallSignature(plain, statics, traced))
        part.is_part = True
        return part

    if _base is _Unlinked or TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: None, **kwargs: Any) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Out, **kwargs: Any) -> Out: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self._call(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def _recipe(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """A callable and its arguments, which make such a function again."""
        return JitFunction, (self.__wrapped__, self.static_argnames, self.config)

    def __reduce__(self) -> Any:
        return function_pickle.reduced(self, *self._recipe())

    def __jitkernels_token__(self) -> tuple[Any, ...]:
        return self._recipe()

    def __dask_tokenize__(self) -> str:
        """The same for the same code and options in every process."""
        return token_of(self)

    def __repr__(self) -> str:
        return f"<jit {self.__wrapped__!r}>"

    def configured(self, static_argnames: tuple[str, ...], config: JitConfig) -> "JitFunction[P, R]":
        """The same function with other static arguments and another config."""
        return JitFunction(self.__wrapped__, static_argnames, config)

    @overload
    def explain(self) -> "FunctionExplanation": ...
    @overload
    def explain(self, *args: P.args, **kwargs: P.kwargs) -> "FunctionExplanation": ...
    def explain(self, *args: Any, **kwargs: Any) -> "FunctionExplanation":
        """Explain a call with these arguments: compile it, but do not run it.

        Without arguments, if the function takes some, explain all that was compiled so far.
        """
        from jitkernels.compiler.diagnostics.explain import explanation, explanation_of_all, explanation_of_divided

        if not args and not kwargs and not self._signature.accepts_no_arguments():
            return explanation_of_all(self)
        specialization, call = self._compile_for(args, kwargs)
        if specialization is None or call is None or specialization.graph is None:
            divided = DividedExplanation()
            if self._divided(specialization, args, kwargs) is not None:
                divided = self.divided()
            reason = self._fallback_reason(specialization)
            return explanation_of_divided(self.__name__, specialization, reason, divided)
        reason = specialization.entry_reason if specialization.graph is not None else ""
        if specialization.graph is not None and call.form not in specialization.links:
            reason = self._python_reason() or self._entry_reason(specialization, call)
        if not reason and foreign_arguments.as_arrays(self, self._signature, args, kwargs):
            reason = foreign_arguments.REASON
        return explanation(self.__name__, specialization, self._names(call), reason)

    def source(self, *args: Any, backend: str = "numba", **kwargs: Any) -> str:
        """The code of such a call, or all that was compiled: Python loops, or LLVM IR for ``backend="native"``.

        Python loops, as the numba backend compiles them, are the default for native functions too: they are shorter.
        """
        from jitkernels.compiler.diagnostics.source_printer import source

        return source(self, args, kwargs, backend)

    def loops(self, *args: Any, **kwargs: Any) -> str:
        """The loops of such a call, or of all that was compiled, as readable pseudo-code: what runs on each fused nest.

        Shows the kind, extent, step and direction of each loop, its vectors and remainder, loads, stores, reductions,
        prefetches, scratch and guards. Raises NotUsableError where NumPy runs all of it.
        """
        from jitkernels.compiler.diagnostics.loop_report import loops

        return loops(self, args, kwargs)

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> "Drawing":
        """Draw the graph of a call with these arguments. Raises NotUsableError if it falls back to NumPy."""
        from jitkernels.compiler.diagnostics.graph_viz import drawn

        specialization, call = self._compile_for(args, kwargs)
        names = [] if specialization is None or call is None else self._names(call)
        return drawn(self.__name__, specialization or self._fallback_reason(None), names)

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

        return exported(directory, self, args, kwargs)

    def _compile_for(self, args: Any, kwargs: Any) -> "tuple[Specialization | None, FlatCall | None]":
        """The specialization for a call without its ``out``, and the flat call; None where it falls back."""
        kwargs = {name: value for name, value in kwargs.items() if name != "out" or self._takes_out}
        arrays = foreign_arguments.as_arrays(self, self._signature, args, kwargs)
        specialization, call, _ = self.look_up(*(arrays or (args, kwargs)))
        build_ahead.end_idle()
        return specialization, call

    @property
    def specializations(self) -> "list[Specialization]":
        """All that was compiled so far."""
        return [one for candidates in list(self._specializations.values()) for one in candidates]

    def stats(self) -> "JitStats":
        """Statistics of all specializations."""
        from jitkernels.compiler.diagnostics.explain import numbers

        return numbers(self._with_parts(), self._hits, self._entries.by_frequency)

    def _with_parts(self) -> "list[Specialization]":
        """All that was compiled so far, parts included."""
        parts = [] if self._breaks is None else [compiled for compiled, _ in self._breaks.parts.values()]
        return [*self.specializations, *(one for part in parts for one in part._with_parts())]

    def divided(self) -> DividedExplanation:
        """Where the function breaks so far, and its compiled parts."""
        return DividedExplanation() if self._breaks is None else self._breaks.explanation()

    def explain_all(self) -> "FunctionExplanation":
        """Explain all that was compiled so far, for a function that may take no arguments."""
        from jitkernels.compiler.diagnostics.explain import explanation_of_all

        return explanation_of_all(self)


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
