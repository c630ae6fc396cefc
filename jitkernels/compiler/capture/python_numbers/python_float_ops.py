"""Operators of Python numbers of which at least one is a float: Python semantics, which raise where NumPy warns."""

import operator
from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced, fresh
from jitkernels.compiler.capture.numpy.ufuncs import CLASSES, elementwise, kind_of, weak
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer

PLAIN = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow, np.equal: operator.eq,
    np.not_equal: operator.ne, np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt,
    np.greater_equal: operator.ge,
}  # fmt: skip


@serves("floats")
def of_floats(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> Any:
    """Python float operators: operations that may raise, or that decide a branch, specialize the code to these values.

    In loops and branches there are no concrete values, and comparisons become bools of the code.
    """
    if Traced in (type(left), type(right)) and float not in (kind_of(left), kind_of(right)):
        return SERVICES["ints"](tracer, ufunc, left, right)
    if ufunc in (np.add, np.subtract, np.multiply):
        return weak(tracer, fresh(tracer, elementwise(tracer, ufunc, (left, right))[0]))
    if ufunc is np.true_divide and type(right) is SymInt:
        if not right:
            raise ZeroDivisionError("float division by zero")
        return quotient(tracer, left, right)
    if ufunc is np.true_divide:
        node = right.node if type(right) in (Traced, SymInt) else None
        if node is None or node.operation == "input":
            if node is not None:
                leaf = node.options["index"]
                tracer.guard(leaf, "==", 0, bool(tracer.leaves[leaf] == 0))
            if (right if node is None else tracer.leaves[leaf]) == 0:
                raise ZeroDivisionError("float division by zero")
            return quotient(tracer, left, right)
    if ufunc is np.power and not (type(left) is SymInt and type(right) in (int, SymInt, bool) and right >= 0):
        return SERVICES["power"](tracer, left, right)
    if ufunc in (np.true_divide, np.remainder, np.floor_divide) and float in (kind_of(left), kind_of(right)):
        return SERVICES["careful"](tracer, ufunc, left, right)
    if ufunc not in PLAIN:
        raise TypeError(f"unsupported operand type(s) for {ufunc.__name__}: 'float'")
    compared = _comparison(tracer, ufunc, left, right)
    if compared is None and ufunc in SWAPPED and not all(map(_is_decided, (left, right))):
        result = fresh(tracer, elementwise(tracer, ufunc, (left, right))[0], is_scalar=True)
        result.is_weak = True
        return result
    return compared if compared is not None else PLAIN[ufunc](_plain(left), _plain(right))


@serves("quotient")
def quotient(tracer: Tracer, left: Any, right: Any) -> Any:
    """A quotient of Python numbers with a nonzero divisor."""
    return weak(tracer, fresh(tracer, elementwise(tracer, np.true_divide, (left, right))[0]))


SWAPPED = {np.less: np.greater, np.greater: np.less, np.less_equal: np.greater_equal, np.greater_equal: np.less_equal,
           np.equal: np.equal, np.not_equal: np.not_equal}  # fmt: skip


def _comparison(tracer: Tracer, ufunc: Any, left: Any, right: Any) -> bool | None:
    """A float argument compared with a constant: the guard is only on which side it lies."""
    if ufunc not in SWAPPED:
        return None
    if type(left) in CLASSES:
        left, right, ufunc = right, left, SWAPPED[ufunc]
    if type(right) not in CLASSES or type(left) is not Traced or left.node.operation != "input":
        return None
    return guarded(tracer, left.node.options["index"], ufunc, right)


def guarded(tracer: Tracer, leaf: int, ufunc: Any, right: Any) -> bool:
    """A float argument compared with a constant; a guard specializes the code to the result."""
    value = tracer.leaves[leaf]
    result = bool(PLAIN[ufunc](value, right))
    if right != right:
        return result  # the same for all values
    if ufunc in (np.less, np.less_equal):
        tracer.guard(leaf, "<" if ufunc is np.less else "<=", right, result)
    elif ufunc in (np.equal, np.not_equal):
        tracer.guard(leaf, "==", right, result == (ufunc is np.equal))
    elif value == value:
        tracer.guard(leaf, "<=" if ufunc is np.greater else "<", right, not result)
    else:
        tracer.guard(leaf, "is", value)
    if ufunc in (np.greater, np.greater_equal) and value == value and result:
        tracer.guard(leaf, "<=", np.inf)
    return result


def _is_decided(value: Any) -> bool:
    """Whether a number depends on arguments only, so that guards can specialize the code to it."""
    return type(value) is not Traced or value.tracer.is_known(value.node)


def _plain(value: Any) -> Any:
    if type(value) is Traced:
        return float(value)
    return int(value) if type(value) is SymInt else value
