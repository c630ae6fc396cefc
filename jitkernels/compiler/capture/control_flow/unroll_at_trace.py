"""Unroll a loop while tracing; each iteration runs only if no earlier one has left the loop."""

from collections.abc import Callable, Iterator
from typing import Any

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.loop_state import State
from jitkernels.compiler.capture.control_flow.trace_branch import trace_if
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import serial

MAX_UNROLLED_NODES = 1000
"""Nodes that all unrolled iterations may have together: LLVM takes a millisecond or two for each."""


def bounded(values: Any, reason: UnsupportedError, most: int = MAX_UNROLLED_NODES) -> Iterator[Any]:
    """The iterations of an unrolled loop; raises `reason` once these would take too long to compile."""
    start = serial()
    for value in values:
        if serial() - start > most:
            raise reason
        yield value


def unroll(
    tracer: Tracer | None, values: Iterator[Any], test: Callable[[], Any], body: Callable[..., Any], state: State
) -> None:
    """Unroll a loop as Python runs it: each iteration runs only if no earlier one has left the loop.

    A loop that was left takes no further value: its iterator may be read behind it.
    """
    while True:
        condition = test()
        if type(condition) is not Traced and not condition:
            return
        try:
            value = next(values)
        except StopIteration:
            return
        if tracer is not None and type(condition) is Traced:

            def run_remaining(value: Any = value) -> None:
                body(value)
                unroll(tracer, values, test, body, state)

            trace_if(tracer, condition, run_remaining, lambda: None, state)
            return
        body(value)
