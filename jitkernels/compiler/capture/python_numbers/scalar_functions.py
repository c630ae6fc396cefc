"""Conversions of traced scalars, ``float``, ``int``, ``len``, ``np.float32``, and functions of floats, which raise.

The originals need concrete numbers, which would specialize the code to each value. So traced functions see replacements
at call sites; references to the types stay unchanged.

Python floats raise where NumPy's do not: division by zero, roots of negative numbers, overflow. The code then detects
a result that is not finite, and the call bails out before anything is written.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList
from jitkernels.compiler.capture.control_flow.iterables import RunTimeIterable
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int, round_to_int
from jitkernels.compiler.capture.numpy.ufuncs import CLASSES, cast_to, elementwise, kind_of, weak
from jitkernels.compiler.capture.numpy_namespace_proxy import CALLED
from jitkernels.compiler.capture.override_registry import METHODS, serves
from jitkernels.compiler.capture.python_numbers import python_float_ops
from jitkernels.compiler.capture.symint import SymInt, as_symint, known_extent
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.elementwise_ops import DTYPES
from jitkernels.compiler.ir.graph import Node, number_of
from jitkernels.compiler.ir.symbolic_dims import Extent, Number


def _is_number(value: Any) -> bool:
    return type(value) is SymInt or (type(value) is Traced and (value.is_scalar or value.is_weak))


def tracer_of_numbers(array: tuple[Any, ...]) -> Tracer | None:
    """The trace of the numbers, if at least one is traced and the others are concrete."""
    tracers = [argument.tracer for argument in array if _is_number(argument)]
    plain = all(_is_number(argument) or type(argument) in CLASSES for argument in array)
    return tracers[0] if tracers and plain else None


@serves("careful")
def careful(tracer: Tracer, ufunc: Any, *arguments: Any) -> Any:
    """A function of Python floats: non-finite results bail out, and Python raises or computes them."""
    floats = [weak(tracer, argument) for argument in arguments]
    node = elementwise(tracer, ufunc, floats)[0]
    if not _is_positive(floats, ufunc):
        fine = elementwise(tracer, np.isfinite, [fresh(tracer, node)])[0]
        if tracer.differentiates and ufunc not in (np.floor_divide, np.remainder):
            # NaN operands, and infinities that follow from infinite ones, raise nothing; derivatives have no fallback.
            is_infinite = builder.elementwise("isinf", node)
            for operand in floats:
                from_operand = builder.elementwise("isinf", operand.node)
                for fits in (
                    builder.elementwise("isnan", operand.node),
                    builder.elementwise("logical_and", is_infinite, from_operand),
                ):
                    fine = builder.elementwise("logical_or", fine, fits)
        tracer.checks.append(builder.elementwise("logical_not", fine))
    return weak(tracer, fresh(tracer, node, is_scalar=True))


def _is_positive(array: list[Traced], ufunc: Any) -> bool:
    """Whether the operand of a root or logarithm is an extent that cannot be zero."""
    node = array[0].node
    extent = _extent_of(node) if len(array) == 1 and ufunc in (np.sqrt, np.log, np.log2, np.log10) else None
    return extent is not None and symbolic_dims.is_at_least(extent, 1)


@serves("truth")
def truth(value: Traced) -> bool | None:
    """Whether a float argument is nonzero, or NaN, as a guard; None for other values."""
    node, tracer = value.node, value.tracer
    if node.operation == "isnan" and is_argument(tracer, node.inputs[0]):
        return is_nan(tracer, node.inputs[0])
    if value.is_weak and is_argument(tracer, node):
        return bool(value != 0.0)
    return None if tracer.depth else _compared(tracer, node)


COMPARED = {
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "equal": np.equal, "not_equal": np.not_equal,
}  # fmt: skip


def _compared(tracer: Tracer, node: Node) -> bool | None:
    """The truth of a NumPy scalar or of a comparison, guarded only on which side the argument lies."""
    if is_argument(tracer, node):
        return python_float_ops.guarded(tracer, node.options["index"], np.not_equal, 0.0)
    if node.operation not in COMPARED:
        result = known_extent(tracer, node)
        return None if result is None else bool(result != 0)
    ufunc, nodes = COMPARED[node.operation], node.inputs
    if nodes[0].operation == "constant":
        ufunc, nodes = python_float_ops.SWAPPED[ufunc], nodes[::-1]
    if is_argument(tracer, nodes[0]) and nodes[1].operation == "constant":
        bound = np.dtype(nodes[1].dtype).type(nodes[1].options["value"])
        return python_float_ops.guarded(tracer, nodes[0].options["index"], ufunc, float(bound))
    if not all(tracer.is_known(node) for node in nodes):
        return None
    operands = [known_extent(tracer, node) for node in nodes]
    return None if None in operands else bool(python_float_ops.PLAIN[ufunc](*operands))


def is_argument(tracer: Tracer, node: Node) -> bool:
    """Whether the node is a float argument, Python's or NumPy's."""
    return node.operation == "input" and isinstance(tracer.leaves[node.options["index"]], float | np.floating)


def is_nan(tracer: Tracer, node: Node) -> bool:
    leaf = node.options["index"]
    result = bool(np.isnan(tracer.leaves[leaf]))
    tracer.guard(leaf, "<=", np.inf, not result)
    return result


@serves("power")
def power(tracer: Tracer, base: Any, exponent: Any) -> Any:
    """A power of Python floats."""
    quick = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}.get(exponent) if type(exponent) in CLASSES else None
    return careful(tracer, np.power, base, exponent) if quick is None else careful(tracer, quick, base)


def rounded(tracer: Tracer, value: Any, way: str) -> Any:
    """A rounded quotient or product of extents as an extent; None where the operand is none.

    A quotient of ints below 2**53 rounds to an integer only where it is one.
    """
    if type(value) is SymInt:
        return value
    node = value.node
    if node.operation in ("floor", "ceil", "trunc") and way == "trunc":
        node, way = node.inputs[0], node.operation
    parts = [_extent_of(operand) for operand in node.inputs] if node.operation in ("divide", "multiply") else [None]
    whole = next((part for part in parts if isinstance(part, Extent)), None)
    if whole is None or not all(0 <= symbolic_dims.value_of(part) < 2**31 for part in parts if part is not None):
        return None
    for factor_extent in parts:
        if isinstance(factor_extent, Extent) and not factor_extent >= 0:
            return None
    number, by = parts[0], parts[-1]
    if node.operation == "divide" and number is not None and by is not None:
        return as_symint(tracer, -(-number // by) if way == "ceil" else number // by)
    factor = next((operand.options["value"] for operand in node.inputs if operand.operation == "constant"), -1.0)
    if node.operation == "multiply" and 0 <= factor <= 1 and way != "ceil":
        return as_symint(tracer, dim_bounds.scaled(whole, float(factor)))
    return None


def _extent_of(node: Node) -> Number | None:
    """The extent, or integer, that a float node converts from."""
    if node.operation == "cast":
        node = node.inputs[0]
    is_fraction = node.operation == "constant" and not float(node.options["value"]).is_integer()
    return None if is_fraction else number_of(node)


def _float(value: Any = 0.0) -> Any:
    if type(value) is Traced and not value.extents and value.dtype.kind in "fiub":
        return value if value.python is float else weak(value.tracer, value)
    return weak(value.tracer, value) if type(value) is SymInt else float(value)


@serves("item")
def item(value: Traced) -> Any:
    """One element as a Python number."""
    if value.ndim:
        if not all(symbolic_dims.same(extent, 1) for extent in value.extents):
            raise UnsupportedError("ndarray.item of several elements")  # NumPy raises
        value = fresh(value.tracer, builder.view(value.node, ((0, ()),) * value.ndim, ()), is_scalar=True)
    if value.dtype.kind == "f":
        return _float(value)
    tracer = value.tracer
    if value.dtype.kind == "c" or value.dtype == "uint64":
        raise UnsupportedError(f"ndarray.item of {value.dtype}")
    whole = known_extent(tracer, value.node)
    if whole is not None:
        return as_symint(tracer, whole)
    if tracer.is_known(value.node):
        return tracer.number(value.node, value).item()
    return (
        as_number(tracer, value.node, bool) if value.dtype == "bool" else as_number(tracer, as_int(tracer, value), int)
    )


def _int(*arguments: Any, **base: Any) -> Any:
    if len(arguments) == 1 and _is_number(arguments[0]):
        result = rounded(arguments[0].tracer, arguments[0], "trunc")
        if result is None:
            result = rounded_to_int(arguments[0], "trunc")
        return int(arguments[0]) if result is None else result
    return int(*arguments, **base)


def rounded_to_int(value: Any, way: str) -> Any:
    """The int that a number which only the compiled code knows is rounded to; None for others, but for ints.

    `way`: trunc, floor, ceil or rint. Numbers of more than 62 bits, infinities and NaN bail out.
    """
    if type(value) is not Traced or value.tracer.is_known(value.node):
        result = known_extent(value.tracer, value.node) if type(value) is Traced else None
        return None if result is None else as_symint(value.tracer, result)
    if value.dtype == np.uint64:
        raise UnsupportedError("the int of a uint64, which may need more than 64 bits")
    return (
        round_to_int(value.tracer, value, way)
        if value.dtype.kind == "f"
        else as_number(value.tracer, as_int(value.tracer, value), int)
    )


def _bool(value: Any = False) -> Any:
    if type(value) is not Traced or value.ndim or value.tracer.is_known(value.node):
        return bool(value)
    return as_number(value.tracer, builder.cast(value.node, "bool"), bool)


def _len(value: Any) -> Any:
    if type(value) is Traced and value.ndim:
        return as_symint(value.tracer, value.extents[0])
    if isinstance(value, RunTimeIterable):
        return value.length
    return value.length if type(value) is GrowableList else len(value)


def _of_type(kind: Any) -> Callable[..., Any]:
    """The replacement of a call of a NumPy scalar type."""
    name = np.dtype(kind).name

    def make(*arguments: Any) -> Any:
        value: Any = arguments[0] if len(arguments) == 1 else None
        if type(value) is Traced and value.ndim:
            return METHODS["astype"](value, kind, copy=False)
        if type(value) not in (SymInt, Traced):
            return kind(*arguments)
        if kind_of(value) is float and np.dtype(kind).kind != "f":
            return kind(*arguments)  # raises for numbers out of range
        return fresh(value.tracer, cast_to(value.tracer, value, name), is_scalar=True)

    return make


CALLED.update({float: _float, int: _int, bool: _bool, len: _len})
CALLED.update({kind: _of_type(kind) for kind in (np.dtype(name).type for name in DTYPES if name != "bool")})
