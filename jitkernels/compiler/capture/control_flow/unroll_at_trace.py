"""Rounds of a loop one after another, each only if the loop is not left before."""

from collections.abc import Callable, Iterator
from typing import Any

from jitkernels.frontends.flow.branches import choose
from jitkernels.frontends.flow.state import State
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import serial

MOST_WRITTEN = 1000
"""Operations that all of them may have together: LLVM takes a millisecond or two for each."""


def within_patience(values: Any, reason: UnknownError, most: int = MOST_WRITTEN) -> Iterator[Any]:
    """Rounds that are written out one after another, until these would take too long to compile."""
    begun = serial()
    for value in values:
        if serial() - begun > most:
            raise reason
        yield value


def unrolled(
    tracer: Tracer, values: Any, test: Callable[[], Any] | None, body: Callable[..., Any], state: State
) -> None:
    """The rounds of a loop one after another, as Python runs it, each only if the loop is not left before."""
    for given in values:
        goes_on = True if test is None else test()
        if type(goes_on) is Traced:
            rest = iter(values)
            choose(tracer, goes_on, lambda: _rounds(tracer, given, rest, test, body, state), _nothing, state)  # noqa: B023
            return
        if not goes_on:
            return
        body(given)


def _rounds(tracer: Tracer, given: Any, rest: Any, test: Any, body: Any, state: State) -> None:
    body(given)
    unrolled(tracer, rest, test, body, state)


def _nothing() -> None:
    pass
