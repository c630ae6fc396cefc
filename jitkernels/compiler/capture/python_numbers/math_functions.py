"""The functions of `math`, and `round`, for traced numbers: Python's values and exceptions, which differ from NumPy's.

What Python raises for is computed by the plain function: the code detects results that are not finite, or operands
out of range, and the call bails out before anything is written.
"""

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.ints import int64_arithmetic
from jitkernels.compiler.capture.numpy.ufuncs import CLASSES, apply, kind_of, weak
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.python_numbers.scalar_functions import (
    careful,
    is_argument,
    is_nan,
    power,
    rounded,
    rounded_to_int,
    tracer_of_numbers,
)
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer, refuse
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.graph import Node

RAISING: dict[Any, Any] = {
    math.sqrt: np.sqrt, math.exp: np.exp, math.exp2: np.exp2, math.expm1: np.expm1,
    math.log2: np.log2, math.log10: np.log10, math.log1p: np.log1p, math.sin: np.sin, math.cos: np.cos,
    math.tan: np.tan, math.asin: np.arcsin, math.acos: np.arccos, math.sinh: np.sinh, math.cosh: np.cosh,
    math.acosh: np.arccosh, math.atanh: np.arctanh, math.log: np.log, math.pow: np.power, math.fmod: np.fmod,
}  # fmt: skip
"""Functions that raise for some numbers, and the universal functions that compute them for the others."""
GAMMAS = {math.gamma: "gamma", math.lgamma: "lgamma"}
"""As `RAISING`, computed by operations that NumPy lacks."""
TOTAL: dict[Any, str] = {
    math.cbrt: "cbrt", math.atan: "arctan", math.atan2: "arctan2", math.tanh: "tanh", math.asinh: "arcsinh",
    math.fabs: "fabs", math.copysign: "copysign", math.erf: "erf", math.erfc: "erfc", math.nextafter: "nextafter",
}  # fmt: skip
"""Functions that raise for no floats, and the operations that compute them."""
ROUNDING = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc"}
PREDICATES = {math.isnan: "isnan", math.isinf: "isinf", math.isfinite: "isfinite"}


@serves("math")
def of_math(function: Any) -> Any:
    """The replacement of a function of `math` or `cmath` in traced functions."""
    return CALLED.get(function, function) if function in CALLED or not callable(function) else _refusing(function)


def _refusing(function: Any) -> Callable[..., Any]:
    """A function that there is no code for: it takes numbers that tracing knows."""

    def call(*arguments: Any, **options: Any) -> Any:
        if any(type(value) is Traced and not value.tracer.is_known(value.node) for value in arguments):
            raise UnsupportedError(f"{function.__module__}.{function.__name__} of an element is not supported")
        return function(*arguments, **options)

    return call


def replacement(function: Any, compile_call: Callable[..., Any]) -> Callable[..., Any]:
    """The function where all arguments are concrete; `compile_call`, which takes the tracer first, elsewhere.

    Where that returns None the code is specialized to the numbers.
    """
    plain = _refusing(function)

    def call(*arguments: Any, **options: Any) -> Any:
        tracer = tracer_of_numbers(arguments)
        result = None if tracer is None else compile_call(tracer, *arguments, **options)
        return plain(*arguments, **options) if result is None else result

    return call


def _raising(ufunc: Any) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, *arguments: Any) -> Any:
        if len(arguments) == 2 and ufunc is np.log:
            return careful(tracer, np.log, arguments[0]) / careful(tracer, np.log, arguments[1])
        if len(arguments) != ufunc.nin:
            return None
        return power(tracer, *arguments) if ufunc is np.power else careful(tracer, ufunc, *arguments)

    return compile_call


def _floats(tracer: Tracer, arguments: Any) -> list[Node]:
    return [weak(tracer, argument).node for argument in arguments]


def _float(tracer: Tracer, node: Node) -> Traced:
    return as_number(tracer, node, float)


def _total(name: str) -> Callable[..., Any]:
    operands = 2 if name in ("arctan2", "copysign", "nextafter") else 1

    def compile_call(tracer: Tracer, *arguments: Any) -> Any:
        if len(arguments) != operands:
            return None
        floats = [weak(tracer, argument) for argument in arguments]
        return weak(tracer, fresh(tracer, apply(tracer, name, *floats), is_scalar=True))

    return compile_call


def _gamma(name: str) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, x: Any) -> Any:
        result = elementwise(name, *_floats(tracer, [x]))
        tracer.checks.append(elementwise("logical_not", elementwise("isfinite", result)))
        return _float(tracer, result)

    return compile_call


def _rounding(way: str) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, value: Any) -> Any:
        if way == "trunc" and kind_of(value) != "float64":
            _refuse_without_method(value, "__trunc__")
        extent = rounded(tracer, value, way)
        return rounded_to_int(value, way) if extent is None else extent

    return compile_call


def _refuse_without_method(value: Any, method: str) -> None:
    """Raise what Python raises of one of NumPy's numbers without a method."""
    if type(value) is Traced and not value.is_weak:
        kind = value.dtype.type if value.is_scalar else np.ndarray
        raise TypeError(f"type numpy.{kind.__name__} doesn't define {method} method")


def _predicate(name: str) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, value: Any) -> Any:
        if type(value) is Traced and is_argument(tracer, value.node):
            is_undefined = is_nan(tracer, value.node)
            is_infinite = not is_undefined and _is_infinite(tracer, value.node)
            return {"isnan": is_undefined, "isinf": is_infinite}.get(name, not (is_undefined or is_infinite))
        return as_number(tracer, elementwise(name, *_floats(tracer, [value])), bool)

    return compile_call


def _is_infinite(tracer: Tracer, node: Node) -> bool:
    """Whether a float argument is infinite, as guards."""
    leaf = node.options["index"]
    value = float(tracer.leaves[leaf])
    for infinity in (math.inf, -math.inf):
        tracer.guard(leaf, "==", infinity, value == infinity)
    return math.isinf(value)


def _hypot(tracer: Tracer, *coordinates: Any) -> Any:
    """The length of a vector, coordinate by coordinate."""
    length, *others = _floats(tracer, coordinates)
    length = elementwise("absolute", length)
    for coordinate in others:
        length = elementwise("hypot", length, coordinate)
    return _float(tracer, length)


def _dist(p: Any, q: Any) -> Any:
    """The distance of two points, sequences of as many numbers."""
    first, second = list(p), list(q)
    if tracer_of_numbers((*first, *second)) is None or len(first) != len(second):
        return math.dist(p, q)
    return CALLED[math.hypot](*(CALLED[float](a) - CALLED[float](b) for a, b in zip(first, second, strict=True)))


def _scaled(function: Any, factor: float) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, value: Any) -> Any:
        return _float(tracer, elementwise("multiply", *_floats(tracer, [value]), factor))

    return compile_call


def _remainder(tracer: Tracer, x: Any, y: Any) -> Any:
    """``x - n * y`` with the integer n nearest to the quotient, even of two, as CPython computes it: exactly."""
    dividend, divisor = _floats(tracer, (x, y))
    size, by = elementwise("absolute", dividend), elementwise("absolute", divisor)
    below = elementwise("fmod", size, by)
    above = elementwise("subtract", by, below)
    halves = elementwise("fmod", elementwise("multiply", elementwise("subtract", size, below), 0.5), by)
    middle = elementwise("subtract", below, elementwise("multiply", halves, 2.0))
    result = elementwise("where", elementwise("less", below, above), below, middle)
    result = elementwise("where", elementwise("greater", below, above), elementwise("negative", above), result)
    sign = elementwise("copysign", builder.constant(1.0, "float64"), dividend)
    result = elementwise("multiply", sign, result)
    tracer.checks.append(elementwise("logical_not", elementwise("isfinite", result)))
    return _float(tracer, result)


def _isclose(tracer: Tracer, a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """Whether two numbers are within the larger of a relative and an absolute tolerance."""
    if not all(type(tolerance) in CLASSES and tolerance >= 0 for tolerance in (rel_tol, abs_tol)):
        return None
    first, second = _floats(tracer, (a, b))
    apart = elementwise("absolute", elementwise("subtract", second, first))
    bounds = [elementwise("absolute", elementwise("multiply", one, float(rel_tol))) for one in (first, second)]
    is_near = elementwise("less_equal", apart, float(abs_tol))
    for bound in bounds:
        is_near = elementwise("logical_or", is_near, elementwise("less_equal", apart, bound))
    for one in (first, second):
        is_near = elementwise("logical_and", is_near, elementwise("isfinite", one))
    return as_number(tracer, elementwise("logical_or", elementwise("equal", first, second), is_near), bool)


def _ldexp(tracer: Tracer, x: Any, i: Any) -> Any:
    if kind_of(i) not in (int, bool):
        raise TypeError("Expected an int as second argument to ldexp.")
    number = weak(tracer, x)
    result = apply(tracer, "ldexp", number, fresh(tracer, int64_arithmetic.as_int(tracer, i), is_scalar=True))
    unexpected = elementwise("logical_and", elementwise("isinf", result), elementwise("isfinite", number.node))
    tracer.checks.append(unexpected)
    return _float(tracer, result)


def _modf(tracer: Tracer, x: Any) -> Any:
    """The fraction and the integer part of a number, both with its sign."""
    (number,) = _floats(tracer, [x])
    whole = elementwise("trunc", number)
    fraction = elementwise("where", elementwise("isinf", number), 0.0, elementwise("subtract", number, whole))
    return _float(tracer, elementwise("copysign", fraction, number)), _float(tracer, whole)


def _ulp(tracer: Tracer, x: Any) -> Any:
    (number,) = _floats(tracer, [x])
    size = elementwise("absolute", number)
    tracer.checks.append(elementwise("equal", size, sys.float_info.max))  # which has no larger neighbour
    return _float(tracer, elementwise("where", elementwise("isinf", size), size, elementwise("spacing", size)))


def _has_index(value: Any) -> bool:
    """Whether Python takes a number as an int, of at most 64 bits: bools of NumPy are none."""
    kind = kind_of(value)
    return kind != "bool" and np.dtype(kind).kind in "ib"


def _gcd(tracer: Tracer, *ints: Any) -> Any:
    if len(ints) != 2 or not all(map(_has_index, ints)):
        return None
    nodes = [int64_arithmetic.as_int(tracer, value) for value in ints]
    for node in nodes:
        tracer.checks.append(elementwise("equal", node, -(2**63)))
    return as_number(tracer, elementwise("gcd", *nodes), int)


def _isqrt(tracer: Tracer, n: Any) -> Any:
    """The integer root of an int below 2**52, of which the root as a float is never rounded up to the next integer."""
    if not _has_index(n):
        return None
    node = int64_arithmetic.as_int(tracer, n)
    tracer.checks.append(elementwise("not_equal", elementwise("right_shift", node, 52), 0))
    return as_number(tracer, builder.cast(elementwise("sqrt", builder.cast(node, "float64")), "int64"), int)


MAX_FACTORIAL = 20
"""That of 20 is the last one of 64 bits."""


def _factorial(tracer: Tracer, n: Any) -> Any:
    if not _has_index(n):
        return None
    node = int64_arithmetic.as_int(tracer, n)
    for out_of_range in (elementwise("less", node, 0), elementwise("greater", node, MAX_FACTORIAL)):
        tracer.checks.append(out_of_range)
    result = builder.constant(1, "int64")
    for k in range(2, MAX_FACTORIAL + 1):
        at_least = elementwise("greater_equal", node, k)
        result = elementwise("where", at_least, builder.constant(math.factorial(k), "int64"), result)
    return as_number(tracer, result, int)


MAX_DECIMALS = 10
"""The powers of ten up to this one have at most 24 bits, behind their zeros."""
LEAST_WHOLE = 2.0**52
"""Larger numbers are integers."""


@serves("round")
def round_(value: Traced, digits: Any = None) -> Any:
    """``round(value, digits)`` of a number."""
    if value.ndim:
        refuse(value)
    tracer, digits = value.tracer, int(digits) if type(digits) is SymInt else digits
    if value.python is complex:
        raise TypeError("type complex doesn't define __round__ method")
    if tracer.is_known(value.node) and (value.is_scalar or value.is_weak):
        return round(float(value) if value.is_weak else tracer.number(value.node, value), digits)
    if value.dtype.kind in "bc" or not (value.is_scalar or value.is_weak):
        _refuse_without_method(value, "__round__")
    if digits is None:
        return rounded_to_int(value, "rint")
    if type(digits) is not int:
        raise UnsupportedError("round to a number of decimals that is not known")
    if value.dtype.kind != "f":
        if digits < 0 or value.dtype.kind == "b":
            raise UnsupportedError("round of bools, or of ints to tens")
        return value
    if value.is_scalar and not value.is_weak:
        return SERVICES["function"](tracer, np.round, (value, digits), {})
    if not 0 <= digits <= MAX_DECIMALS:
        raise UnsupportedError(f"round of a float to {digits} decimals: expected 0 to {MAX_DECIMALS}")
    number, power = value.node, 10.0**digits
    size = elementwise("absolute", number)
    is_whole = elementwise("greater_equal", size, LEAST_WHOLE)
    is_exact = elementwise("less", elementwise("multiply", size, power), LEAST_WHOLE)
    tracer.checks.append(elementwise("logical_not", elementwise("logical_or", is_whole, is_exact)))
    decimal = elementwise("divide", _nearest_integer(number, power), power)
    result = elementwise("where", is_whole, number, elementwise("copysign", decimal, number))
    return as_number(tracer, result, float)


def _nearest_integer(number: Node, power: float) -> Node:
    """The integer nearest to the exact product, even of two.

    The product is that of the first 24 bits, and of the others, which are exact.
    """
    head = builder.cast(builder.cast(number, "float32"), "float64")
    first = elementwise("multiply", head, power)
    second = elementwise("multiply", elementwise("subtract", number, head), power)
    nearest = elementwise("rint", elementwise("add", first, second))
    beyond = elementwise("subtract", first, nearest)
    is_odd = elementwise("not_equal", elementwise("fmod", nearest, 2.0), 0.0)
    opposite = elementwise("negative", second)
    result = nearest
    for name, half in (("greater", 0.5), ("less", -0.5)):
        from_middle = elementwise("subtract", beyond, half)
        is_tie = elementwise("logical_and", elementwise("equal", from_middle, opposite), is_odd)
        is_past = elementwise("logical_or", elementwise(name, from_middle, opposite), is_tie)
        result = elementwise("where", is_past, elementwise("add", nearest, 2 * half), result)
    return result


COMPILED: dict[Any, Callable[..., Any]] = {
    **{function: replacement(function, _raising(ufunc)) for function, ufunc in RAISING.items()},
    **{function: replacement(function, _total(name)) for function, name in TOTAL.items()},
    **{function: replacement(function, _gamma(name)) for function, name in GAMMAS.items()},
    **{function: replacement(function, _rounding(way)) for function, way in ROUNDING.items()},
    **{function: replacement(function, _predicate(name)) for function, name in PREDICATES.items()},
    math.radians: replacement(math.radians, _scaled(math.radians, math.pi / 180)),
    math.degrees: replacement(math.degrees, _scaled(math.degrees, 180 / math.pi)),
    math.hypot: replacement(math.hypot, _hypot),
    math.dist: _dist,
    math.remainder: replacement(math.remainder, _remainder),
    math.isclose: replacement(math.isclose, _isclose),
    math.ldexp: replacement(math.ldexp, _ldexp),
    math.modf: replacement(math.modf, _modf),
    math.ulp: replacement(math.ulp, _ulp),
    math.gcd: replacement(math.gcd, _gcd),
    math.isqrt: replacement(math.isqrt, _isqrt),
    math.factorial: replacement(math.factorial, _factorial),
}
"""Functions of `math` that compiled code computes."""
CALLED.update(COMPILED)
