"""Functions of single numbers in a trace: ``float``, ``int``, ``len``, ``np.float32``, ``math.exp``.

They ask for plain numbers, of which code would be made for each. So traced functions see these in their place, where
they call them; where they stand for types, they are what they are.

Python's floats raise where NumPy's do not: where a division by zero, a root of a negative number or an overflow would
be. The code then finds a number that is not finite, and the call is refused before anything is written.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jitkernels.frontends.flow.growing import Listed
from jitkernels.frontends.flow.ints import as_int, plain, truncated
from jitkernels.frontends.standin import CALLED
from jitkernels.frontends.tables import METHODS, serves
from jitkernels.frontends.traced import Traced, fresh
from jitkernels.frontends.tracer import Tracer
from jitkernels.frontends.universal import CLASSES, cast_to, elementwise, kind_of, weak
from jitkernels.frontends.whole import Whole, as_whole
from jitkernels.graph import construct, extents, limits
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.extents import Extent, Number
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.scalars import DTYPES


def _is_number(value: Any) -> bool:
    return type(value) is Whole or (type(value) is Traced and (value.is_scalar or value.is_weak))


def _tracer_of(given: tuple[Any, ...]) -> Tracer | None:
    """The trace that numbers are of, where at least one is, and the others are plain ones."""
    tracers = [one.tracer for one in given if _is_number(one)]
    plain = all(_is_number(one) or type(one) in CLASSES for one in given)
    return tracers[0] if tracers and plain else None


@serves("careful")
def careful(tracer: Tracer, ufunc: Any, *given: Any) -> Any:
    """A function of Python's floats: what is not finite is Python's, which raises, or finds that it need not."""
    floats = [weak(tracer, one) for one in given]
    node = elementwise(tracer, ufunc, floats)[0]
    if not _is_positive(floats, ufunc):
        fine = elementwise(tracer, np.isfinite, [fresh(tracer, node)])[0]
        if tracer.differentiates and ufunc not in (np.floor_divide, np.remainder):
            # Nothing is raised for NaN, nor where infinity gives it, and there is no plain function that could tell.
            is_infinite = construct.elementwise("isinf", node)
            for one in floats:
                from_one = construct.elementwise("isinf", one.node)
                for fits in (
                    construct.elementwise("isnan", one.node),
                    construct.elementwise("logical_and", is_infinite, from_one),
                ):
                    fine = construct.elementwise("logical_or", fine, fits)
        tracer.checks.append(construct.elementwise("logical_not", fine))
    return weak(tracer, fresh(tracer, node, is_scalar=True))


def _is_positive(given: list[Traced], ufunc: Any) -> bool:
    """Whether a root or logarithm is one of an extent that cannot be zero."""
    node = given[0].node
    extent = _extent_of(node) if len(given) == 1 and ufunc in (np.sqrt, np.log, np.log2, np.log10) else None
    least = None if extent is None else extents.least_of(extent)
    return least is not None and least > 0


@serves("truth")
def truth(value: Traced) -> bool | None:
    """Whether a float argument is another number than zero, or is none at all; None where this is not asked."""
    node, tracer = value.node, value.tracer
    if node.operation == "isnan" and _is_argument(tracer, node.inputs[0]):
        return _is_nan(tracer, node.inputs[0])
    if value.is_weak and _is_argument(tracer, node):
        return bool(value != 0.0)
    return None


def _is_argument(tracer: Tracer, node: Node) -> bool:
    return node.operation == "input" and isinstance(tracer.leaves[node.options["index"]], float)


def _is_nan(tracer: Tracer, node: Node) -> bool:
    leaf = node.options["index"]
    found = bool(np.isnan(tracer.leaves[leaf]))
    tracer.guard(leaf, "<=", np.inf, not found)
    return found


@serves("power")
def power(tracer: Tracer, base: Any, exponent: Any) -> Any:
    """A power of Python's floats."""
    quick = (
        {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}.get(exponent) if type(exponent) in CLASSES else None
    )
    return careful(tracer, np.power, base, exponent) if quick is None else careful(tracer, quick, base)


FUNCTIONS = {
    math.sqrt: np.sqrt, math.cbrt: np.cbrt, math.exp: np.exp, math.exp2: np.exp2, math.expm1: np.expm1,
    math.log2: np.log2, math.log10: np.log10, math.log1p: np.log1p, math.sin: np.sin, math.cos: np.cos,
    math.tan: np.tan, math.asin: np.arcsin, math.acos: np.arccos, math.atan: np.arctan, math.sinh: np.sinh,
    math.cosh: np.cosh, math.tanh: np.tanh, math.asinh: np.arcsinh, math.acosh: np.arccosh, math.atanh: np.arctanh,
    math.fabs: np.fabs, math.radians: np.radians, math.degrees: np.degrees, math.log: np.log, math.pow: np.power,
    math.atan2: np.arctan2, math.hypot: np.hypot, math.copysign: np.copysign, math.fmod: np.fmod,
}  # fmt: skip
"""Functions of `math`, and what they are for finite numbers."""


@serves("math")
def of_math(function: Any) -> Any:
    """A function of `math` as a traced function sees it."""
    ufunc, rounding = FUNCTIONS.get(function), ROUNDING.get(function)

    def call(*given: Any) -> Any:
        tracer = _tracer_of(given)
        if tracer is not None and ufunc is not None and len(given) == ufunc.nin:
            return power(tracer, *given) if ufunc is np.power else careful(tracer, ufunc, *given)
        if function is math.isnan and tracer is not None and _is_argument(tracer, given[0].node):
            return _is_nan(tracer, given[0].node)
        if tracer is not None and rounding is not None:
            found = _rounded(tracer, given[0], rounding)
            return function(*given) if found is None else found
        return function(*given)

    return call if ufunc is not None or rounding is not None or function is math.isnan else function


ROUNDING = {math.floor: "floor", math.ceil: "ceil", math.trunc: "trunc"}


def _rounded(tracer: Tracer, value: Any, way: str) -> Any:
    """The whole number that a quotient or product of extents is rounded to; None where there is no such extent.

    A quotient of ints below 2**53 is rounded to a whole number only where it is one.
    """
    if type(value) is Whole:
        return value
    node = value.node
    if node.operation in ("floor", "ceil", "trunc") and way == "trunc":
        node, way = node.inputs[0], node.operation
    parts = [_extent_of(one) for one in node.inputs] if node.operation in ("divide", "multiply") else [None]
    whole = next((one for one in parts if isinstance(one, Extent)), None)
    if whole is None or not all(0 <= extents.value_of(one) < 2**31 for one in parts if one is not None):
        return None
    for one in parts:
        if isinstance(one, Extent) and not one >= 0:
            return None
    number, by = parts[0], parts[-1]
    if node.operation == "divide" and number is not None and by is not None:
        return as_whole(tracer, -(-number // by) if way == "ceil" else number // by)
    factor = next((one.options["value"] for one in node.inputs if one.operation == "constant"), -1.0)
    if node.operation == "multiply" and 0 <= factor <= 1 and way != "ceil":
        return as_whole(tracer, limits.scaled(whole, float(factor)))
    return None


def _extent_of(node: Node) -> Number | None:
    """The extent, or whole number, that a node is as a float."""
    if node.operation == "cast":
        node = node.inputs[0]
    if node.operation == "extent":
        return node.options["extent"]
    if node.operation == "constant" and float(node.options["value"]).is_integer():
        return int(node.options["value"])
    return None


def _float(value: Any = 0.0) -> Any:
    if type(value) is Traced and not value.extents and value.dtype.kind in "fiub":
        return value if value.python is float else weak(value.tracer, value)
    return weak(value.tracer, value) if type(value) is Whole else float(value)


@serves("item")
def item(value: Traced) -> Any:
    """One element as a Python number. Raises UnknownError for ints that only the running code will know."""
    if value.ndim:
        if not all(extents.same(one, 1) for one in value.extents):
            raise UnknownError("ndarray.item of several elements")  # which NumPy refuses
        value = fresh(value.tracer, construct.view(value.node, ((0, ()),) * value.ndim, ()), is_scalar=True)
    if value.dtype.kind == "f":
        return _float(value)
    if any(one.operation == "call" or _is_array(value.tracer, one) for one in sorted_nodes([value.node])):
        raise UnknownError("ndarray.item of ints")
    return value.tracer.number(value.node, value).item()


def _is_array(tracer: Tracer, node: Node) -> bool:
    return node.operation == "input" and tracer.is_array(node)


def _int(*given: Any, **base: Any) -> Any:
    if len(given) == 1 and _is_number(given[0]):
        found = _rounded(given[0].tracer, given[0], "trunc")
        return _of_code(given[0]) if found is None else found
    return int(*given, **base)


def _of_code(value: Any) -> Any:
    """The int that a number is, where only the running code knows."""
    if type(value) is not Traced or value.tracer.is_known(value.node):
        return int(value)
    if value.dtype == np.uint64:
        raise UnknownError("the int of a uint64, which may need more than 64 bits")
    return (
        truncated(value.tracer, value)
        if value.dtype.kind == "f"
        else plain(value.tracer, as_int(value.tracer, value))
    )


def _len(value: Any) -> Any:
    if type(value) is Traced and value.ndim:
        return as_whole(value.tracer, value.extents[0])
    return value.length if type(value) is Listed else len(value)


def _of_type(kind: Any) -> Callable[..., Any]:
    """One of NumPy's types, called."""
    name = np.dtype(kind).name

    def make(*given: Any) -> Any:
        value: Any = given[0] if len(given) == 1 else None
        if type(value) is Traced and value.ndim:
            return METHODS["astype"](value, kind, copy=False)
        if type(value) not in (Whole, Traced):
            return kind(*given)
        if kind_of(value) is float and np.dtype(kind).kind != "f":
            return kind(*given)  # which refuses what is none of its numbers
        return fresh(value.tracer, cast_to(value.tracer, value, name), is_scalar=True)

    return make


CALLED.update({float: _float, int: _int, len: _len})
CALLED.update({kind: _of_type(kind) for kind in (np.dtype(name).type for name in DTYPES if name != "bool")})
CALLED.update({function: of_math(function) for function in (*FUNCTIONS, *ROUNDING)})
