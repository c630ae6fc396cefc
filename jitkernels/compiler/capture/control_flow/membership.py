"""``value in container`` of numbers that only the compiled code knows: comparisons with the elements."""

from typing import Any

import numpy as np

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.growing_list import GrowableList, is_array_backed
from jitkernels.compiler.capture.control_flow.iterables import element_loop
from jitkernels.compiler.capture.control_flow.loop_state import Variable, as_number
from jitkernels.compiler.capture.control_flow.number_set import NumberSet
from jitkernels.compiler.capture.control_flow.trace_branch import as_bool, is_decided, truth
from jitkernels.compiler.capture.override_registry import SERVICES, serves
from jitkernels.compiler.capture.symint import SymInt
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise
from jitkernels.compiler.ir.unsupported import ConcretizationError

CONTAINERS = (tuple, list, GrowableList, set, frozenset, dict)
NUMBERS = (bool, int, float, complex, SymInt, Traced)
UNEQUAL = (str, bytes, type(None))
"""Types of elements that no number is equal to."""
MAX_COMPARED_ELEMENTS = 64
"""Elements that a value is compared with one by one."""
SETS = "build an array of flags or counts, a list, or take np.unique"


def is_member(tracer: Tracer, value: Any, container: Any) -> Any:
    """``value in container``; NotImplemented where tracing decides it, or Python does."""
    if type(container) is Traced and container.ndim:
        equal = SERVICES["function"](tracer, np.any, (container == value,), {})
        return as_number(tracer, truth(tracer, equal), bool)
    if type(container) is NumberSet:
        return container.contains(value)
    if is_array_backed(container):
        return _is_element(tracer, value, container)
    if type(container) not in (*CONTAINERS, range):
        return NotImplemented
    if type(container) is range:
        return NotImplemented if is_decided(value) else _is_in_range(tracer, value, container)
    # A list that turns out to grow in the loop is one of computed length when the loop is traced again.
    elements = container.initial_elements() if type(container) is GrowableList else [*container]
    if all(map(_is_plain, (value, *elements))):
        return value in elements if type(container) is GrowableList else NotImplemented
    if not isinstance(value, NUMBERS) or (type(value) is Traced and value.ndim):
        return NotImplemented
    kind = type(container).__name__.removeprefix("Growable").lower()
    if len(elements) > MAX_COMPARED_ELEMENTS:
        raise UnsupportedError(f"whether a number is in a {kind} of more than {MAX_COMPARED_ELEMENTS} elements: {SETS}")
    others = [element for element in elements if not isinstance(element, UNEQUAL)]
    if not all(isinstance(element, NUMBERS) and not getattr(element, "ndim", 0) for element in others):
        raise UnsupportedError(f"whether a number is in a {kind} of other elements than numbers: {SETS}")
    if any(element is value for element in others):
        return True
    found = builder.constant(False, "bool")
    for equal in [value == element for element in others]:
        if type(equal) is not bool:
            found = elementwise("logical_or", found, truth(tracer, equal))
        elif equal:
            return True
    return found.operation != "constant" and as_number(tracer, found, bool)


@serves("hash")
def hashed(value: Traced) -> int:
    """The hash of a number, as a key or element. Raises ConcretizationError where only the compiled code knows it."""
    if not value.tracer.is_known(value.node):
        raise ConcretizationError(f"a set or dict of keys that only the compiled code knows: {SETS}")
    return hash(value.tracer.number(value.node, value).item())


def _is_plain(value: Any) -> bool:
    """Whether tracing knows a value, or guards fix it."""
    return type(value) not in (Traced, SymInt) or (type(value) is Traced and not value.ndim and is_decided(value))


def _is_in_range(tracer: Tracer, value: Any, numbers: range) -> Any:
    first, last = (numbers[0], numbers[-1]) if numbers else (1, 0)
    low, high = min(first, last), max(first, last)
    if not numbers:
        return False
    conditions = [value >= low, value <= high, (value - first) % abs(numbers.step) == 0]
    nodes = [truth(tracer, condition) for condition in conditions]
    return as_number(tracer, elementwise("logical_and", elementwise("logical_and", nodes[0], nodes[1]), nodes[2]), bool)


def _is_element(tracer: Tracer, value: Any, values: Any) -> Any:
    """Whether a list that has grown has an element, by a search from the first one."""
    found = Variable("_jk_found", False)

    def searches() -> Any:
        return as_number(tracer, elementwise("logical_not", truth(tracer, found.value)), bool)

    def body(index: Any) -> None:
        found.set(as_bool(tracer, values[index] == value))

    SERVICES["for"](element_loop(values.length), searches, body, found)
    return found.value
