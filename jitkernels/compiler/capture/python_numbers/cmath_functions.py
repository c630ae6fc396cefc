"""The functions of `cmath` for traced numbers: Python's values and exceptions, which differ from NumPy's.

Operands or results that are not finite bail out: Python raises for some of them, and has a table for the others.
"""

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.numpy.ufuncs import CLASSES, cast_to
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.python_numbers import python_complex_ops
from jitkernels.compiler.capture.python_numbers.math_functions import replacement
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node

NAMES = ("exp", "log", "log10", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")
PREDICATES = ("isnan", "isinf", "isfinite")


def _complex(tracer: Tracer, value: Any) -> Node:
    return cast_to(tracer, value, "complex128")


def _number(tracer: Tracer, node: Node) -> Traced:
    return as_number(tracer, node, complex)


def _finite(tracer: Tracer, result: Node, *operands: Node) -> None:
    """Bail out unless the result and the operands are finite; derivatives do if the result alone is not."""
    fine = elementwise("isfinite", result)
    for operand in operands:
        is_finite = elementwise("isfinite", operand)
        if tracer.differentiates:
            fine = elementwise("logical_or", fine, elementwise("logical_not", is_finite))
        else:
            fine = elementwise("logical_and", fine, is_finite)
    tracer.checks.append(elementwise("logical_not", fine))


def _function(name: str) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, value: Any) -> Any:
        operand = _complex(tracer, value)
        result = elementwise(name, operand)
        _finite(tracer, result, operand)
        return _number(tracer, result)

    return compile_call


def _log(tracer: Tracer, value: Any, *base: Any) -> Any:
    logarithm = _function("log")
    if not base:
        return logarithm(tracer, value)
    quotient = python_complex_ops.of_complex(
        tracer, np.true_divide, *(logarithm(tracer, one) for one in (value, *base))
    )
    _finite(tracer, quotient.node)
    return quotient


def _phase_node(number: Node) -> Node:
    imag, real = (Node(name, (number,), "float64", ()) for name in ("imag", "real"))
    return elementwise("arctan2", imag, real)


def _phase(tracer: Tracer, value: Any) -> Any:
    return as_number(tracer, _phase_node(_complex(tracer, value)), float)


def _polar(tracer: Tracer, value: Any) -> Any:
    number = _complex(tracer, value)
    size = elementwise("absolute", number)
    _finite(tracer, size, number)
    return as_number(tracer, size, float), as_number(tracer, _phase_node(number), float)


def _rect(tracer: Tracer, r: Any, phi: Any) -> Any:
    size, angle = (cast_to(tracer, value, "float64") for value in (r, phi))
    planes = [elementwise("multiply", size, elementwise(name, angle)) for name in ("cos", "sin")]
    result = Node("complex", planes, "complex128", ())
    _finite(tracer, result, size, angle)
    return _number(tracer, result)


def _predicate(name: str) -> Callable[..., Any]:
    def compile_call(tracer: Tracer, value: Any) -> Any:
        return as_number(tracer, elementwise(name, _complex(tracer, value)), bool)

    return compile_call


def _isclose(tracer: Tracer, a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    """Whether the distance of two numbers is within the larger of a relative and an absolute tolerance."""
    if not all(type(tolerance) in CLASSES and tolerance >= 0 for tolerance in (rel_tol, abs_tol)):
        return None
    first, second = _complex(tracer, a), _complex(tracer, b)
    apart = elementwise("absolute", elementwise("subtract", first, second))
    is_near = elementwise("less_equal", apart, float(abs_tol))
    for one in (first, second):
        bound = elementwise("multiply", elementwise("absolute", one), float(rel_tol))
        is_near = elementwise("logical_or", is_near, elementwise("less_equal", apart, bound))
    for one in (first, second):
        is_near = elementwise("logical_and", is_near, elementwise("isfinite", one))
    return as_number(tracer, elementwise("logical_or", elementwise("equal", first, second), is_near), bool)


COMPILED: dict[Any, Callable[..., Any]] = {
    **{(function := getattr(cmath, name)): replacement(function, _function(name)) for name in NAMES},
    **{(function := getattr(cmath, name)): replacement(function, _predicate(name)) for name in PREDICATES},
    cmath.log: replacement(cmath.log, _log),
    cmath.phase: replacement(cmath.phase, _phase),
    cmath.polar: replacement(cmath.polar, _polar),
    cmath.rect: replacement(cmath.rect, _rect),
    cmath.isclose: replacement(cmath.isclose, _isclose),
}
"""Functions of `cmath` that compiled code computes."""
CALLED.update(COMPILED)
