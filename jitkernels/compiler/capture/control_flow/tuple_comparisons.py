"""Comparisons of tuples whose elements only the compiled code knows: lexicographic, as Python's are."""

from collections.abc import Callable
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import as_number
from jitkernels.compiler.capture.control_flow.trace_branch import is_decided, truth
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import elementwise
from jitkernels.compiler.ir.graph import Node


def compare_tuples(tracer: Tracer, name: str, compare: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """``left < right`` and the like, by the class name of the operator; NotImplemented where Python compares."""
    if type(left) is not tuple or type(right) is not tuple or all(map(_is_known, (left, right))):
        return NotImplemented
    if name in ("Eq", "NotEq"):
        equal = _are_equal(tracer, left, right)
        return as_number(tracer, equal if name == "Eq" else elementwise("logical_not", equal), bool)
    pairs = [*zip(left, right, strict=False)]
    result = builder.constant(bool(compare(len(left), len(right))), "bool")
    for one, other in reversed(pairs):  # the first pair that differs decides
        differs = elementwise("logical_not", _are_equal(tracer, one, other))
        decision = compare_tuples(tracer, name, compare, one, other)
        decision = compare(one, other) if decision is NotImplemented else decision
        result = elementwise("where", differs, _truth(tracer, decision), result)
    return as_number(tracer, result, bool)


def _are_equal(tracer: Tracer, left: Any, right: Any) -> Node:
    if left is right:
        return builder.constant(True, "bool")
    if type(left) is not tuple or type(right) is not tuple:
        return _truth(tracer, left == right)
    if len(left) != len(right):
        return builder.constant(False, "bool")
    result = builder.constant(True, "bool")
    for one, other in zip(left, right, strict=True):
        result = elementwise("logical_and", result, _are_equal(tracer, one, other))
    return result


def _truth(tracer: Tracer, value: Any) -> Node:
    return builder.constant(value, "bool") if type(value) is bool else truth(tracer, value)


def _is_known(value: Any) -> bool:
    """Whether tracing knows a value, or guards fix it."""
    if type(value) is tuple:
        return all(map(_is_known, value))
    return type(value) not in (Traced, SymInt) or (type(value) is Traced and not value.ndim and is_decided(value))
