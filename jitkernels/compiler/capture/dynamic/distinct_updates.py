"""Updates ``array[indices] += values`` at indices of computed number in loops, as columns of CSC matrices are added.

NumPy reads all elements before it writes any, so one element after the other is updated only where no index occurs
twice; memory for the elements, which have no size to plan, is not needed then.
"""

from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.iterables import element_loop
from jitkernels.compiler.capture.control_flow.loop_state import State, Variable, as_number
from jitkernels.compiler.capture.control_flow.trace_branch import trace_if
from jitkernels.compiler.capture.dynamic.dynamic_array import DynamicArray, Elementwise
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.override_registry import SERVICES
from jitkernels.compiler.ir.builder import constant, elementwise
from jitkernels.compiler.ir.graph import Node

MAX_UNORDERED_INDICES = 256
"""The most indices in no order that are compared with each other."""
UNORDERED = 2**63 - 1
NO_VARIABLES = State((), lambda: (), lambda _: None, 0)


def update_distinct(array: Traced, indices: DynamicArray, elements: Elementwise) -> None:
    """``array[indices] = f(array[indices])`` in a loop, one element after the other.

    Calls in which an index occurs twice bail out, as NumPy reads all elements before it writes any. Indices are
    compared with all before them where they do not increase.
    """
    tracer, storage = array.tracer, array.view.storage
    size = as_int(tracer, array.shape[0])

    def place(index: Any) -> Node:
        node = as_int(tracer, indices.at(index))
        return Node("where", (elementwise("less", node, 0), elementwise("add", node, size), node), "int64", ())

    last = Variable("_jk_last", -1)  # UNORDERED from the first index that is not above the one before it

    def compare(index: Any) -> None:
        node, before = place(index), as_int(tracer, last.value)
        is_next = elementwise("greater", node, before)
        last.set(as_number(tracer, Node("where", (is_next, node, constant(UNORDERED, "int64")), "int64", ()), int))

    indices.each(compare, last)

    def compare_all() -> None:
        def compare_others(index: Any) -> None:
            node = place(index)

            def compare_one(other: Any) -> None:
                tracer.checks.append(elementwise("equal", place(other), node))

            SERVICES["for"](element_loop(index), None, compare_one, NO_VARIABLES)

        tracer.checks.append(elementwise("greater", as_int(tracer, indices.length), MAX_UNORDERED_INDICES))
        indices.each(compare_others)

    is_unordered = as_number(tracer, elementwise("equal", as_int(tracer, last.value), UNORDERED), bool)
    trace_if(tracer, is_unordered, compare_all, lambda: None, NO_VARIABLES)

    def assign(index: Any) -> None:
        array[indices.at(index)] = elements.at(index)

    Elementwise.being_updated.append(storage)
    try:
        indices.each(assign)
    finally:
        Elementwise.being_updated.remove(storage)
