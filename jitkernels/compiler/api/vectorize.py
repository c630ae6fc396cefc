"""`vectorize` and `guvectorize`: compiled universal functions of functions of numbers, or of rows of arrays."""

import functools
import linecache
import operator
import re
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.compiler.api.jit import JitFunction, jit
from jitkernels.compiler.capture.numba_dispatchers import UfuncSource, as_python
from jitkernels.compiler.capture.rewrite.rewrite_function import inside
from jitkernels.compiler.capture.universal.plain_ufunc import PlainGufunc, PlainUfunc, dimensions_of
from jitkernels.core.cached_property import unlocked_cached_property
from jitkernels.errors import ArgumentError, ArgumentTypeError, shown

if TYPE_CHECKING:
    from jitkernels.compiler.diagnostics.explain import FunctionExplanation

_PART = r"\(([^\W\d]\w*(,[^\W\d]\w*)*)?\)"
LAYOUT = re.compile(f"{_PART}(,{_PART})*->{_PART}(,{_PART})*")


class GeneralizedUfunc:
    """What `guvectorize` returns: a function of arrays, which loops over dimensions that its layout does not name."""

    def __init__(self, plain: Any, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, plain.function)
        self.__qualname__: str = plain.function.__qualname__
        self._plain, self._options = plain, options
        self._call = self._compiled("call(*arrays)", "(*arrays)")

    def _compiled(self, head: str, called: str) -> JitFunction[..., Any]:
        """A compiled function that is a call of the plain one. Its code is not the package's, which is never traced."""
        text = f"def {head}: return plain{called}\n"
        file = f"<{text.strip()}>"
        linecache.cache[file] = len(text), None, [text], file
        name = head.partition("(")[0]
        code = inside(compile(text, file, "exec", dont_inherit=True), name)
        names = {"plain": self._plain, "__name__": self._plain.function.__module__}
        function = types.FunctionType(code, names, f"{self._plain.function.__name__}.{name}")
        compiled: JitFunction[..., Any] = jit(function, static_argnames=_statics(function), **self._options)
        return compiled

    def __jitkernels_ufunc__(self) -> UfuncSource:
        source: UfuncSource = self._plain.__jitkernels_ufunc__()
        return source

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """The function of the broadcast arrays; `out`: an array, or a tuple of them, for the results."""
        if out is None:
            return self._call(*arrays)
        self._check_out(arrays)
        return self._call(*arrays, out=out)

    def _check_out(self, arrays: tuple[Any, ...]) -> None:
        """Raise ArgumentTypeError where the outputs are among the arguments already."""
        if self._plain.count_of_inputs not in (None, len(arrays)):
            raise ArgumentTypeError(
                f"out: expected {self._plain.count_of_inputs} arguments beside it, got {len(arrays)}"
            )

    def explain(self, *arrays: Any) -> "FunctionExplanation":
        """Explain a call with these arguments, as of a function under `jitkernels.jit`."""
        return self._call.explain(*arrays)

    def __reduce__(self) -> str:
        """Pickled by name, as functions are."""
        name: str = self.__qualname__
        return name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._plain.function.__name__!r}>"


class Ufunc(GeneralizedUfunc):
    """What `vectorize` returns: a function of arrays, with methods of NumPy's universal functions for two operands."""

    @unlocked_cached_property
    def _reduce(self) -> JitFunction[..., Any]:
        return self._compiled("reduce(array, axis, keepdims)", ".reduce(array, axis=axis, keepdims=keepdims)")

    @unlocked_cached_property
    def _accumulate(self) -> JitFunction[..., Any]:
        return self._compiled("accumulate(array, axis)", ".accumulate(array, axis=axis)")

    @unlocked_cached_property
    def _outer(self) -> JitFunction[..., Any]:
        return self._compiled("outer(first, second)", ".outer(first, second)")

    def reduce(self, array: Any, axis: int = 0, *, keepdims: bool = False) -> Any:
        """``f(...f(f(x[0], x[1]), x[2])..., x[n - 1])`` along an axis, in order. Raises ArgumentError for n = 0."""
        return self._reduce(array, _axis_of(axis, array), keepdims)

    def accumulate(self, array: Any, axis: int = 0) -> Any:
        """All intermediate results of `reduce`: as many as the array has rows along the axis."""
        return self._accumulate(array, _axis_of(axis, array))

    def outer(self, first: Any, second: Any) -> Any:
        """The function of each element of the first array with each of the second one."""
        return self._outer(first, second)


def vectorize(function: Any = None, /, *, types: str | Sequence[str] = (), **options: Any) -> Any:
    """Make a universal function of a function of numbers: ``@vectorize``, or ``@vectorize(...)`` with these keywords.

    It broadcasts its arguments and calls the function with NumPy's numbers; a tuple of results becomes one of arrays.
    The loops are compiled with the function, as by `jitkernels.jit`, whose `options` are taken; where they cannot be,
    they run in Python. `types`: loops such as ``"dd->d"`` in NumPy's letters, of which the first takes the arguments
    that it is safe to cast them to. Without, results have the dtypes that the function returns for its arguments'.

    Raises ArgumentTypeError for what is no function of Python, ArgumentError for types that do not fit it.
    """
    loops = _loops(types)
    if function is None:
        return lambda one: vectorize(one, types=loops, **options)
    plain = _function(function)
    count = plain.__code__.co_argcount
    for loop in loops:
        if len(loop.partition("->")[0]) != count:
            raise ArgumentError(f"types: expected {count} arguments, as of {plain.__name__}, got {loop!r}")
    return Ufunc(PlainUfunc(plain, loops), options)


def guvectorize(layout: str, *, types: str | Sequence[str], **options: Any) -> Callable[[Any], GeneralizedUfunc]:
    """Make a generalized universal function: ``@guvectorize("(m,n),(n)->(m)", types="dd->d")``.

    The function gets one array for each input, of the dimensions in the layout, or a number for ``()``, and one for
    each output, which it writes to; that of ``()`` has one element. All further dimensions are broadcast and looped
    over, as by `vectorize`. `types`: loops in NumPy's letters, as there.

    Raises ArgumentError for a layout or types that do not fit each other, or whose outputs have dimensions of no input.
    """
    text = layout.replace(" ", "") if isinstance(layout, str) else ""
    if not LAYOUT.fullmatch(text):
        raise ArgumentError(f"layout: expected one such as '(m,n),(n)->(m)', got {shown(layout)}")
    inputs, outputs = dimensions_of(text)
    known = {name for names in inputs for name in names}
    free = sorted({name for names in outputs for name in names} - known)
    if free:
        raise ArgumentError(f"layout: expected dimensions of inputs in outputs, got {', '.join(free)}")
    loops = _loops(types)
    if not loops:
        raise ArgumentError("types: expected at least one loop, such as 'dd->d'")
    for loop in loops:
        if [*map(len, loop.split("->"))] != [len(inputs), len(outputs)]:
            raise ArgumentError(
                f"types: expected letters for {len(inputs)} inputs and {len(outputs)} outputs, got {loop!r}"
            )

    def decorate(function: Any) -> GeneralizedUfunc:
        plain = _function(function)
        count = plain.__code__.co_argcount
        if count != len(inputs) + len(outputs):
            raise ArgumentError(f"layout: expected {count} arguments, as of {plain.__name__}, got {layout!r}")
        return GeneralizedUfunc(PlainGufunc(plain, text, loops), options)

    return decorate


def _axis_of(axis: Any, array: Any) -> int:
    """An axis of an array. Raises ArgumentTypeError for what is no int, ArgumentError for another axis."""
    ndim = np.ndim(array)
    if axis is None and ndim == 1:
        return 0
    if type(axis) is bool or not hasattr(type(axis), "__index__"):
        raise ArgumentTypeError(f"axis: expected an int, got {shown(axis)}")
    if not -ndim <= operator.index(axis) < ndim:
        raise ArgumentError(f"axis: expected one of {ndim} dimensions, got {axis}")
    return operator.index(axis)


def _function(value: Any) -> types.FunctionType:
    if isinstance(value, JitFunction):
        value = value.__wrapped__
    value = as_python(value)
    if type(value) is not types.FunctionType:
        raise ArgumentTypeError(f"function: expected a function of Python, got {shown(value)}")
    return value


def _loops(given: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(given, str | Sequence):
        raise ArgumentTypeError(f"types: expected loops such as 'dd->d', got {shown(given)}")
    loops = (given,) if isinstance(given, str) else tuple(given)
    for loop in loops:
        inputs, _, outputs = loop.partition("->") if isinstance(loop, str) else ("", "", "")
        try:
            is_loop = bool(inputs and outputs) and all(np.dtype(code).char == code for code in inputs + outputs)
        except TypeError:
            is_loop = False
        if not is_loop:
            raise ArgumentError(f"types: expected loops such as 'dd->d', got {shown(loop)}")
    return loops


def _statics(function: Any) -> tuple[str, ...]:
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return tuple(name for name in names if name in ("axis", "keepdims"))
