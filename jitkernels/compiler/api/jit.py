"""`jit`: a NumPy function that is traced for each new kind of arguments, and runs as compiled code from then on."""

import functools
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, overload

import numpy as np

from jitkernels import handlers
from jitkernels.errors import (
    ArgumentError,
    ArgumentTypeError,
    DifferenceError,
    JitKernelsError,
    WorkspaceError,
    shown,
)
from jitkernels.frontends import alarms, direct, given_results, left, links, varied
from jitkernels.frontends import filled as _filled  # noqa: F401  # the tables of what traced arrays do
from jitkernels.frontends import specialisation as specialisations
from jitkernels.frontends.arguments import Flattener, constant, flattened, patterns
from jitkernels.frontends.checked import Check
from jitkernels.frontends.outputs import Known
from jitkernels.frontends.signatures import Signature, names_in
from jitkernels.frontends.specialisation import MANY_ELEMENTS, Specialisation
from jitkernels.frontends.varied import Varied
from jitkernels.graph.config import JitConfig
from jitkernels.graph.construct import UnknownError
from jitkernels.locks import making
from jitkernels.native import arenas, floating_errors, vectorcall

if TYPE_CHECKING:
    from pathlib import Path

    from jitkernels.bundles.description import Description
    from jitkernels.explanation import Explanation
    from jitkernels.frontends.drawing import Drawing
    from jitkernels.frontends.inspection import FunctionExplanation, JitStats

P = ParamSpec("P")
R = TypeVar("R")
Out = TypeVar("Out", bound="np.ndarray[Any, Any] | tuple[np.ndarray[Any, Any], ...]")
"""What takes results, and is given back."""
MOST_KEYS = 4096
MOST_OF_A_KEY = 32
MOST_FORMS = 16
"""Ways of passing the same arguments, by position or by name, that are linked."""


class _Unlinked:
    """The base of functions whose calls Python serves all."""


_base: Any = links.base or _Unlinked


class JitFunction(_base, Generic[P, R]):  # type: ignore[misc]  # made when this is imported
    """A function that runs as compiled code, with the results of the plain one."""

    __jitkernels_traced__ = staticmethod(lambda self: self.__wrapped__)
    _is_plain: ClassVar[bool] = True
    """Whether calls of the function itself do the same."""

    def __init__(self, function: Callable[P, R], static_argnames: tuple[str, ...], config: JitConfig) -> None:
        functools.update_wrapper(self, function)
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.__wrapped__ = function
        self.config, self.static_argnames = config, static_argnames
        self._signature = Signature(function, static_argnames)
        self._specialisations: dict[Any, list[Specialisation]] = {}
        self._plain_calls: dict[str, int] = {}
        self._varied, self._hits = Varied(), 0
        self._takes_out = self._signature.takes("out")
        plain = function if self._is_plain else None
        self._links = links.Links(self, self._from_python, plain, takes_out=self._takes_out)

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
        """What serves calls that no compiled function takes."""
        return self._call(args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__wrapped__.__qualname__)

    def __repr__(self) -> str:
        return f"<jit {self.__wrapped__!r}>"

    def configured(self, static_argnames: tuple[str, ...], config: JitConfig) -> "JitFunction[P, R]":
        """The function, compiled otherwise."""
        return JitFunction(self.__wrapped__, static_argnames, config)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One call: the code for these arguments, made if there is none."""
        out = None
        if not self._takes_out and "out" in kwargs:
            kwargs = dict(kwargs)
            out = kwargs.pop("out")
        if floating_errors.are_told():
            return self._plain(args, kwargs, out)
        found, leaves, values = self._found(args, kwargs)
        if found is None or found.graph is None:
            with left.Left(self, self._reason(found), has_raised=found is not None and found.has_raised):
                self._links.enter_plain(self.__wrapped__, args, kwargs, out, MANY_ELEMENTS)
                return self._plain(args, kwargs, out)
        if found.written and not found.may_write(leaves):
            return self._plain(args, kwargs, out)
        found.calls += 1
        largest = max((leaf.size for leaf in leaves if type(leaf) is np.ndarray), default=0)
        if largest <= found.plain_at_once and not self.config.sees_calls:
            self._links.enter_plain(self.__wrapped__, args, kwargs, out, found.plain_at_once, found)
            return self._plain(args, kwargs, out)
        if self._link(found, args, kwargs) or found.brings_parts():
            # By the compiled function, which is in front of this one now.
            linked: Any = self
            return linked(*args, **kwargs) if out is None else linked(*args, **kwargs, out=out)
        if largest <= found.plain_up_to and not self.config.sees_calls:
            self._links.enter_plain(self.__wrapped__, args, kwargs, out, found.plain_up_to, found)
            return self._plain(args, kwargs, out)
        return self._computed(found, leaves, values, args, kwargs, out)

    def _computed(
        self, found: Specialisation, leaves: Any, values: Any, args: Any, kwargs: Any, out: Any
    ) -> Any:
        """The results of compiled code, started from Python."""
        heard = floating_errors.Heard()
        is_checked = self.config.is_checked
        before = [leaves[i].copy() for i in found.written] if found.may_raise or is_checked else ()
        arrays = None
        try:
            check = Check(found, leaves, values) if is_checked else None
            with np.errstate(all="ignore") if found.alarm is None else heard.listening():
                arrays = found.run(leaves, values)
            if check is not None:
                check.compare(arrays, leaves, lambda: self._names(args, kwargs))
        except Exception as error:  # the plain function raises as it would, from where all was before
            for i, array in zip(found.written, before, strict=False):
                leaves[i][...] = array
            if isinstance(error, DifferenceError | WorkspaceError) or handlers.have_raised(error):
                raise  # which is no other for the plain function, or comes when arguments are written in part
            if isinstance(error, JitKernelsError):
                found.note_failure(error)
        if arrays is None:  # not above, where our error would be told as the context of the function's
            return self._plain(args, kwargs, out)
        found.tell(heard.kinds, args, kwargs)
        result = found.plan.make(Known(leaves, arrays, values))
        return result if out is None else given_results.given_to(out, result)

    def _link(self, found: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Let calls like this one go without Python from now on, if they can; whether they do."""
        form, function = (len(args), tuple(kwargs)), self.__jitkernels_traced__(self)
        if form in found.direct or len(found.direct) >= MOST_FORMS:
            return False
        with making:
            if form in found.direct:
                return False
            if self._links.are_many:
                self._unlink()
            found.direct[form] = None
            if _base is _Unlinked or self.config.sees_calls or type(function) not in direct.CALLABLES:
                return False
            structure, leaves = self._structure(args, kwargs)
            bound = self._ordered(args, kwargs)
            try:
                call = direct.call_of(
                    function, structure, bound, self._signature, args, kwargs, found.constants
                )
                entry = direct.entry_of(found, leaves, call) if call is not None else None
                if call is not None and entry is not None:
                    made = direct.Direct(entry, call, found.alarm, cached=self.config.cache)
                    self._links.enter(made)
                    found.direct[form] = made
            except JitKernelsError as error:
                found.note_failure(error)
            return found.direct[form] is not None

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        result = self.__wrapped__(*args, **kwargs)
        return result if out is None else given_results.given_to(out, result)

    def _found(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Specialisation | None, list[Any], Any]:
        """The specialisation for some arguments, their leaves, and the values of its symbols."""
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
        """Remember why a call is left to NumPy."""
        self._plain_calls[reason] = self._plain_calls.pop(reason, 0) + 1

    def _reason(self, found: Specialisation | None) -> str:
        """Why a call is left to NumPy."""
        return next(reversed(self._plain_calls)) if found is None else found.reason

    def _ordered(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments in one order."""
        return self._signature.ordered(args, kwargs)

    def _traced_part(self, flattener: Flattener) -> Any:
        """The structure of the function itself."""
        function: Any = self.__wrapped__
        is_plain = type(function) is types.FunctionType
        return flattener.function(function) if is_plain else flattener.flatten(function)

    def _structure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
        positional, named = self._ordered(args, kwargs)
        statics = self._signature.statics

        def taken(flattener: Flattener) -> Any:
            part, take = self._traced_part(flattener), flattener.argument
            parts = [constant(one) if i in statics else take(one) for i, one in enumerate(positional)]
            named_parts = [
                constant(one) if name in self.static_argnames else take(one) for name, one in named.items()
            ]
            return part, (tuple, tuple(parts)), (dict, tuple(named), tuple(named_parts))

        return flattened(self.static_argnames, taken)

    def _made(self, key: Any, leaves: list[Any]) -> tuple[Specialisation | None, list[Any], Any]:
        kept = self._specialisations.get(key, [])
        for one in kept:
            values = one.values(leaves)
            if values is not None:
                return one, leaves, values
        if len(kept) >= MOST_OF_A_KEY:
            self._refused(
                f"the function is made anew for each number that it is given: {len(kept)} are enough"
            )
            return None, leaves, None
        if not kept and self._varied.are_enough(key):
            self._refused(varied.REASON)
            return None, leaves, None
        new = specialisations.made(self.__wrapped__, key[0], leaves, self.config)
        new.alarm = alarms.of(self.__wrapped__, new, lambda *given: self._structure(*given)[1])
        values = new.values(leaves)
        if values is None:
            raise AssertionError("a trace whose guards do not hold for what was traced")
        if key not in self._specialisations and len(self._specialisations) >= MOST_KEYS:
            self._specialisations.pop(next(iter(self._specialisations)))
        self._specialisations[key] = [new, *kept]
        return new, leaves, values

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> "FunctionExplanation":
        """What becomes of a call with such arguments, whose code is made but not run."""
        from jitkernels.frontends.inspection import FunctionExplanation, argument_names, explanation

        found, structure = self._looked_at(args, kwargs)
        if isinstance(found, str):
            return FunctionExplanation(self.__name__, (), {}, (), found, 0, 0)
        return explanation(self.__name__, found, argument_names(structure, self._signature.names))

    def _names(self, args: Any, kwargs: Any) -> list[str]:
        """Those of the arrays and numbers in the arguments."""
        from jitkernels.frontends.inspection import argument_names

        return argument_names(self._structure(args, kwargs)[0], self._signature.names)

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> "Drawing":
        """A picture of what becomes of such a call. Raises NotUsableError where it is left to NumPy."""
        from jitkernels.frontends.drawing import drawn
        from jitkernels.frontends.inspection import argument_names

        found, structure = self._looked_at(args, kwargs)
        names = argument_names(structure, self._signature.names) if structure is not None else []
        return drawn(self.__name__, found, names)

    def tune(self, *args: Any, **kwargs: Any) -> "tuple[Explanation, ...]":
        """Spend ``seconds=1.0`` on measuring how calls with such arguments run best, and keep what was best.

        Without arguments calls are those that were counted with ``profile=True``. From then on code is made so, in
        this process and in others; what was made before is forgotten. Returns what was measured. Raises NotUsableError
        where calls are left to NumPy or measurements would not be used, ArgumentError for a wrong time.
        """
        from jitkernels.frontends import tuning

        return tuning.tune(self, args, kwargs)

    def export(self, directory: "Path | str", /, *args: P.args, **kwargs: P.kwargs) -> "Description":
        """Write what becomes of such a call as a bundle: object file, C header, weights, examples in C and Python.

        It is for these dtypes and shapes, for processors like this one and one thread, and needs the C library alone;
        what the function refers to, attributes of objects and ints are its weights. Returns what it says of itself.
        Raises BundleError where NumPy does a part, OSError where files cannot be written.
        """
        from jitkernels.frontends.exporting import exported

        def taken_apart() -> tuple[Any, list[Any], list[str]]:
            return *self._structure(args, kwargs), self._names(args, kwargs)

        return exported(directory, self.__wrapped__, taken_apart, self.config, self.static_argnames)

    def _looked_at(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        kwargs = {name: one for name, one in kwargs.items() if name != "out" or self._takes_out}
        found, _, _ = self._found(args, kwargs)
        if found is None:
            return self._reason(found), None
        return found, self._structure(args, kwargs)[0]

    def stats(self) -> "JitStats":
        """Numbers about all code that was made."""
        from jitkernels.frontends.inspection import numbers

        return numbers([one for kept in list(self._specialisations.values()) for one in kept], self._hits)

    def release(self) -> None:
        """Forget all code that was made, and let go of memory that is kept for calls, of other functions too."""
        arenas.release()
        with making:
            self._specialisations, self._varied = {}, Varied()
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
    *,
    static_argnames: str | tuple[str, ...] | list[str] = (),
    config: JitConfig | None = None,
    **options: Any,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
def jit(
    function: Any = None,
    /,
    *,
    static_argnames: str | tuple[str, ...] | list[str] = (),
    config: JitConfig | None = None,
    **options: Any,
) -> Any:
    """Compile a NumPy function: ``@jit``, or with keywords, which are those of `JitConfig` besides these.

    `static_argnames` are parameters, or names that the function refers to, whose values are constants of the code,
    which is made anew for each. Arrays among them may not be changed in place: what is made of them is made once.

    Where NumPy would warn of floating-point errors, the plain function is run once more, for its warnings: not each
    time where they were shown before. Of what overwrites arguments, arithmetic alone is warned of. Where
    `numpy.errstate` asks for more than a warning, NumPy computes.
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
