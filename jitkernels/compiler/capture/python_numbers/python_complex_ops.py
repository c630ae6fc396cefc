"""Operators and methods of Python numbers of which one is complex: Python semantics, which raise where NumPy warns."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.numpy.ufuncs import cast_to, elementwise, kind_of
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.override_registry import METHODS, serves
from jitkernels.compiler.capture.python_numbers.python_float_ops import PLAIN
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node

MAX_MULTIPLIED_EXPONENT = 100
"""The largest exponent for which Python multiplies."""


def _weak(tracer: Tracer, node: Node) -> Traced:
    result = fresh(tracer, node, is_scalar=True)
    result.is_weak = True
    return result


@serves("complex numbers")
def of_complex(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """Python complex operators. Division by zero bails out, and Python raises."""
    if ufunc is np.power:
        return _power(tracer, left, right)
    if ufunc is np.true_divide:
        divisor = cast_to(tracer, right, "complex128")
        tracer.checks.append(builder.elementwise("equal", divisor, 0.0))
    elif ufunc not in (np.add, np.subtract, np.multiply, np.equal, np.not_equal):
        raise TypeError(f"unsupported operand type(s) for {PLAIN.get(ufunc, ufunc).__name__}: 'complex'")
    return _weak(tracer, elementwise(tracer, ufunc, (left, right))[0])


def _power(tracer: Tracer, base: Any, exponent: Any) -> Any:
    """A power by a small int, by Python's products: from the lowest bit on."""
    if type(exponent) not in (int, float) or exponent != int(exponent) or not 0 <= exponent <= MAX_MULTIPLIED_EXPONENT:
        raise UnsupportedError("a power of a Python complex number by another exponent than a small int")
    bits, factor = int(exponent), _weak(tracer, cast_to(tracer, base, "complex128"))
    result: Any = None
    while bits:
        if bits & 1:
            result = factor if result is None else of_complex(tracer, np.multiply, result, factor)
        bits >>= 1
        factor = of_complex(tracer, np.multiply, factor, factor) if bits else factor
    return _weak(tracer, builder.constant(1.0, "complex128")) if result is None else result


@serves("size of complex")
def size(value: Traced) -> Traced:
    """``abs`` of a Python complex number; Python raises where it overflows."""
    node = builder.elementwise("absolute", value.node)
    is_inside = builder.elementwise("isfinite", value.node)
    overflows = builder.elementwise("logical_and", is_inside, builder.elementwise("isinf", node))
    value.tracer.checks.append(overflows)
    return _weak(value.tracer, node)


def _conjugate(array: Any) -> Any:
    """``conj``: reals are their own."""
    if array.dtype.kind != "c":
        return array
    result = np.conjugate(array)
    result.is_weak = array.is_weak
    return result


METHODS.update(conj=_conjugate, conjugate=_conjugate)


def _complex(real: Any = 0.0, imag: Any = 0.0) -> Any:
    """``complex`` of numbers."""
    numbers = [value for value in (real, imag) if type(value) in (Traced, SymInt)]
    if not numbers or any(type(value) is Traced and value.ndim for value in numbers):
        return complex(real, imag)
    tracer = numbers[0].tracer
    if type(real) is str:
        raise TypeError("complex() can't take second arg if first is a string")
    if all(kind_of(value) not in (complex, "complex64", "complex128") for value in (real, imag)):
        planes = [cast_to(tracer, value, "float64") for value in (real, imag)]
        return _weak(tracer, Node("complex", planes, "complex128", ()))
    if type(imag) is float and imag == 0.0:
        return _weak(tracer, cast_to(tracer, real, "complex128"))
    raise UnsupportedError("complex of complex numbers")


CALLED[complex] = _complex
