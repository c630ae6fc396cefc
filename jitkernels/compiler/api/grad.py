"""Derivatives of NumPy functions: `grad`, `value_and_grad`, `vjp`, `jvp`.

The function is traced with fresh variables in place of what it is differentiated by, and the reverse pass adds its
nodes to the same graph, so that both are compiled as one function. A directional derivative goes forward with the
function, and keeps nothing.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from jitkernels.compiler.api.jit import JitFunction
from jitkernels.compiler.autodiff.forward import tangents
from jitkernels.compiler.autodiff.loop_vjp import is_float
from jitkernels.compiler.autodiff.reverse import NotDifferentiableError
from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.pytree.call_signature import CallSignature
from jitkernels.compiler.capture.pytree.derivative_trees import (
    Leaves,
    Variables,
    derivative_context,
    describe_value,
    matching_nodes,
    missing_derivative_error,
)
from jitkernels.compiler.capture.trace_context import Tracer, current
from jitkernels.compiler.dispatch import dispatch_chain
from jitkernels.compiler.dispatch.specialization import Specialization
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import zeros
from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.transforms.complex_planes import joined, planes_of, split_between
from jitkernels.errors import ArgumentTypeError, DerivativeError, shown
from jitkernels.runtime import vectorcall

MAX_CACHED = 256


class DerivativeSpec(NamedTuple):
    """Which derivative: ``grad``, ``value``, ``vjp`` or ``jvp``, by which arguments, and whether there is more."""

    kind: str
    argnums: tuple[int, ...]
    is_one: bool
    has_aux: bool

    @property
    def text(self) -> str:
        """All of it as text, which is a constant wherever a function has it."""
        return f"{self.kind} {','.join(map(str, self.argnums))} {int(self.is_one)} {int(self.has_aux)}"


def parse_derivative_spec(text: str) -> DerivativeSpec:
    """Parse a derivative specification."""
    kind, argnums, is_one, has_aux = text.split(" ")
    return DerivativeSpec(kind, tuple(map(int, filter(None, argnums.split(",")))), is_one == "1", has_aux == "1")


class Derivative(JitFunction[Any, Any]):
    """A derivative of a function as compiled code. There is no plain function that could serve instead."""

    __jitkernels_traced__ = staticmethod(lambda self: functools.partial(evaluated, self.way.text, self.__wrapped__))

    _is_plain = False

    def __init__(self, function: Any, way: DerivativeSpec, names: tuple[str, ...], config: JitConfig) -> None:
        self.way, target = way, functools.partial(evaluated, way.text, function)
        binds = way.kind not in ("vjp", "jvp")
        super().__init__(function, names, config, CallSignature(function, names, target, binds=binds))

    def __repr__(self) -> str:
        return f"<{self.way.kind} of {self.__wrapped__!r}>"

    def _recipe(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Derivative, (self.__wrapped__, self.way, self.static_argnames, self.config)

    def configured(self, static_argnames: tuple[str, ...], config: JitConfig) -> "Derivative":
        """The same derivative, compiled otherwise."""
        return Derivative(self.__wrapped__, self.way, static_argnames, config)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:
            return evaluated(self.way.text, self.__wrapped__, *args, **kwargs)
        return super()._call(*args, **kwargs)

    def _fall_back(self, specialization: Specialization | None, args: Any, kwargs: Any, out: Any) -> Any:  # noqa: ARG002
        raise self._refusal(self._fallback_reason(specialization), args, kwargs)

    def _plain(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any, reason: str = "") -> Any:  # noqa: ARG002
        raise self._refusal(reason or "the compiled code refuses these arguments", args, kwargs)

    def _refusal(self, reason: str, args: Any, kwargs: Any) -> Exception:
        """Why there is no derivative; where the function itself raises, what that raises."""
        if self.way.kind in ("grad", "value"):
            try:
                self.__wrapped__(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  # which is what a caller expects
                return error
        return DerivativeError(f"{named(self.__wrapped__)} has no compiled derivative: {reason}")


if dispatch_chain.base is not None:
    vectorcall.prepare(Derivative)


def named(function: Any) -> str:
    """A function's name, and where it is."""
    while isinstance(function, functools.partial):
        function = function.args[1] if function.func is evaluated else function.func
    name, code = getattr(function, "__name__", type(function).__name__), getattr(function, "__code__", None)
    if code is None:
        code = getattr(getattr(function, "__wrapped__", None), "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else str(name)


def evaluated(text: str, function: Any, *args: Any, **kwargs: Any) -> Any:
    """A derivative in a trace: what `Derivative` stands for."""
    tracer, way = current(), parse_derivative_spec(text)
    if tracer is None:
        argnums = way.argnums[0] if way.is_one else way.argnums
        return derivative(way.kind, function, argnums, way.has_aux)(*args, **kwargs)
    if way.kind in ("grad", "value"):
        return _gradient(tracer, way, function, args, kwargs)
    (primals, given), about = args, named(function)
    variables = Variables(tracer, about)
    replaced = [variables.replaced(one, f"argument {i}") for i, one in enumerate(primals)]
    result, aux = _called(tracer, way, function, replaced, {})
    outs = Leaves(tracer, about, "result")
    outs.collect(result)
    if way.kind == "vjp":
        weights = matching_nodes(tracer, about, given, outs.arrays, "cotangents")
        parts = variables.of(outs.nodes(), weights)
        return _with_aux(way, (result, variables.tree(primals, parts)), aux)
    along = matching_nodes(tracer, about, given, variables.arrays, "tangents")
    planes, outputs = split_between(variables.nodes(), outs.nodes())
    try:
        pushed = tangents(outputs, planes_of(along), planes, derivative_context(tracer))
    except NotDifferentiableError as error:
        raise missing_derivative_error(tracer, about, error) from None
    return _with_aux(way, (result, outs.tree(result, joined(pushed, outs.nodes()))), aux)


def _with_aux(way: DerivativeSpec, found: tuple[Any, ...], aux: Any) -> Any:
    return (*found, aux) if way.has_aux else found


def _called(tracer: Tracer, way: DerivativeSpec, function: Any, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
    tracer.differentiates += 1
    try:
        found = function(*args, **kwargs)
    finally:
        tracer.differentiates -= 1
    if not way.has_aux:
        return found, None
    if not isinstance(found, tuple) or len(found) != 2:
        raise DerivativeError(
            f"{named(function)}: expected a pair (result, aux) with has_aux=True, got {describe_value(found)}"
        )
    return found


def _gradient(tracer: Tracer, way: DerivativeSpec, function: Any, args: Any, kwargs: Any) -> Any:
    about, count = named(function), len(args)
    wrong = [i for i in way.argnums if not -count <= i < count]
    if wrong:
        raise DerivativeError(f"argnums: expected numbers of {count} positional arguments, got {wrong[0]}")
    numbers = [i % count for i in way.argnums]
    by = list(dict.fromkeys(numbers))
    variables, given = Variables(tracer, about), list(args)
    for i in by:
        given[i] = variables.replaced(args[i], f"argument {i}")
    result, aux = _called(tracer, way, function, given, kwargs)
    if type(result) is not Traced and not isinstance(result, float | np.floating):
        raise DerivativeError(f"{about}: expected a float as the result, got {describe_value(result)}")
    value = result if type(result) is Traced else None
    if value is not None and (value.ndim or not is_float(value.node) or value.dtype.kind == "c"):
        raise DerivativeError(f"{about}: expected a float as the result, got {describe_value(result)}")
    if value is None:
        parts = [zeros(one.dtype, one.shape) for one in variables.nodes()]
    else:
        parts = variables.of([value.node], [builder.constant(1.0, value.node.dtype)])
    trees = dict(zip(by, variables.tree([args[i] for i in by], parts), strict=True))
    found = trees[by[0]] if way.is_one else tuple(trees[i] for i in numbers)
    if way.kind == "value":
        return ((result, aux) if way.has_aux else result), found
    return (found, aux) if way.has_aux else found


def _way(kind: str, function: Any, argnums: Any, has_aux: Any) -> DerivativeSpec:
    """Check the arguments of a derivative. Raises ArgumentTypeError."""
    if not callable(function):
        raise ArgumentTypeError(f"function: expected a function, got {shown(function)}")
    if type(has_aux) is not bool:
        raise ArgumentTypeError(f"has_aux: expected a bool, got {shown(has_aux)}")
    several = isinstance(argnums, tuple | list)
    try:
        numbers = tuple(operator.index(one) for one in (argnums if several else (argnums,)))
    except TypeError:
        raise ArgumentTypeError(f"argnums: expected an int or a tuple of ints, got {shown(argnums)}") from None
    return DerivativeSpec(kind, numbers, not several, has_aux)


def derivative(kind: str, function: Any, argnums: Any, has_aux: Any) -> Any:
    """The derivative of a function, cached; in a trace, a function that adds it to the graph."""
    if current() is not None:
        return functools.partial(evaluated, _way(kind, function, argnums, has_aux).text, function)
    try:
        return _cached(kind, function, argnums, has_aux)
    except TypeError:  # of functions that cannot be hashed
        return _new(kind, function, argnums, has_aux)


def _new(kind: str, function: Any, argnums: Any, has_aux: Any) -> Derivative:
    way = _way(kind, function, argnums, has_aux)
    config = function.config if isinstance(function, JitFunction) else JitConfig()
    names = function.static_argnames if isinstance(function, JitFunction) else ()
    if isinstance(function, JitFunction) and not isinstance(function, Derivative):
        function = function.__wrapped__
    return Derivative(function, way, names, config)


_cached = functools.lru_cache(maxsize=MAX_CACHED, typed=True)(_new)


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Any:
    """The gradient of a function that gives a float, by its positional arguments of these numbers.

    The result is like the argument: an array, a number, or lists, tuples, dicts and dataclasses of them; for several
    `argnums` a tuple. With `has_aux` the function gives a pair, of which the second is given back beside the gradient.
    """
    return derivative("grad", function, argnums, has_aux)


def value_and_grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Any:
    """Like `grad`; gives the pair of what the function gives and the gradient."""
    return derivative("value", function, argnums, has_aux)


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value and the VJP function, from cotangents of the value to a tuple of those of the arguments."""
    transposed = derivative("vjp", function, (), has_aux)
    result = function(*primals)
    value, aux = result if has_aux else (result, None)

    def pull(cotangent: Any) -> Any:
        return tuple(transposed(primals, cotangent)[1])

    return (value, pull, aux) if has_aux else (value, pull)


def jvp(function: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """What a function gives for `primals`, and how that changes as these do along `tangents`."""
    pushed = derivative("jvp", function, (), has_aux)
    for name, one in (("primals", primals), ("tangents", tangents)):
        if not isinstance(one, tuple | list):
            raise ArgumentTypeError(f"{name}: expected a tuple of arguments, got {shown(one)}")
    if len(primals) != len(tangents):
        raise ArgumentTypeError(f"tangents: expected {len(primals)} as of primals, got {len(tangents)}")
    return pushed(tuple(primals), tuple(tangents))
