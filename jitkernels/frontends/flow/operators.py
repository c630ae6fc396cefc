"""What rewritten functions call: Python's own control flow where the trace knows enough, else loops and branches."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from jitkernels.errors import TracingError
from jitkernels.frontends.flow import numbers as _numbers  # noqa: F401  # the table of what traced functions call
from jitkernels.frontends.flow.along import along, enumerate_, range_, zip_
from jitkernels.frontends.flow.branches import as_bool, choose, is_decided, value_of
from jitkernels.frontends.flow.loops import Loop, unrolled
from jitkernels.frontends.flow.state import UNSET, State
from jitkernels.frontends.places import placed
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer, current
from jitkernels.graph.construct import UnknownError
from jitkernels.graph.ir import serial

__all__ = [
    "UNSET",
    "State",
    "and_",
    "both",
    "chosen",
    "either",
    "enumerate_",
    "for_",
    "if_",
    "not_",
    "or_",
    "range_",
    "while_",
    "zip_",
]
SHORT, MOST_ROUNDS = 8, 4096
"""Rounds of a loop that are always, and at most, run one after another while tracing."""
MOST_WRITTEN = 1000
"""Operations that all of them may have together: LLVM takes a millisecond or two for each."""


def for_(values: Any, test: Callable[[], Any] | None, body: Callable[[Any], Any], state: State) -> None:
    """``for given in values: body(given)``, as long as the test holds."""
    tracer, found = current(), along(values)
    if tracer is None or found is None:
        _run(tracer, values, test, body, state)
        return
    rounds = found.count.rounds
    if rounds is not None and rounds <= SHORT:
        _run(tracer, found, test, body, state)
        return
    try:
        Loop(tracer, state, found.count, test, lambda i: body(found.at(i))).trace()
    except (UnknownError, TracingError) as error:
        now, reason = found.count.now, placed(error, state.line)
        if now is None or tracer.depth and rounds is None:
            raise
        if len(now) > MOST_ROUNDS:
            raise reason from None
        tracer.note(f"a loop is run round by round: {reason}")
        _run(tracer, _within_patience(found, reason), test, body, state)


def _within_patience(values: Any, reason: UnknownError) -> Iterator[Any]:
    """Rounds that are written out one after another, until these would take too long to compile."""
    begun = serial()
    for value in values:
        if serial() - begun > MOST_WRITTEN:
            raise reason
        yield value


def _run(tracer: Tracer | None, values: Any, test: Any, body: Any, state: State) -> None:
    """The loop as Python has it: the trace knows each round."""
    if tracer is None or test is None:
        for given in values:
            if test is not None and not test():
                return
            body(given)
        return
    unrolled(tracer, iter(values), test, body, state)


def while_(test: Callable[[], Any], body: Callable[[], Any], state: State) -> None:
    """``while test(): body()``."""
    tracer = current()
    if tracer is None:
        while test():
            body()
        return
    try:
        Loop(tracer, state, None, test, body).trace()
    except (UnknownError, TracingError) as error:
        if tracer.depth:
            raise
        reason = placed(error, state.line)
        with suppress(TracingError):  # where the trace does not know either, NumPy does all of it
            for _ in range(MOST_ROUNDS):
                if not test():
                    return
                body()
        raise reason from None


def if_(test: Any, yes: Callable[[], Any], no: Callable[[], Any], state: State) -> None:
    """``if test: yes() else: no()``."""
    tracer = current()
    if tracer is None or is_decided(test):
        (yes if test else no)()
        return
    try:
        choose(tracer, test, yes, no, state)
    except UnknownError as error:
        if not tracer.depth:
            reason = placed(error, state.line)
            tracer.note(str(reason))
            try:
                bool(test)  # which raises what says where this is
            except TracingError as told:
                raise TracingError(f"{told}. Why there are not both: {reason}") from None
        raise


def chosen(test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes() if test else no()``."""
    tracer = current()
    if tracer is None or is_decided(test):
        return yes() if test else no()
    return value_of(tracer, test, yes, no)


def both(one: Any, other: Callable[[], Any]) -> Any:
    """``one and other()`` where nothing but its truth counts."""
    tracer = current()
    if tracer is None or is_decided(one):
        return other() if one else False
    parts: list[Any] = []

    def second() -> Any:
        parts.append(as_bool(tracer, other()))
        return parts[0]

    found = value_of(tracer, one, second, lambda: False)
    if type(found) is Traced:  # if it is true, so are both
        nodes = [value.node for value in (one, *parts) if type(value) is Traced]
        tracer.implied[id(found.node)] = found.node, nodes
    return found


def either(one: Any, other: Callable[[], Any]) -> Any:
    """``one or other()`` where nothing but its truth counts."""
    tracer = current()
    if tracer is None or is_decided(one):
        return True if one else other()
    return value_of(tracer, one, lambda: True, lambda: as_bool(tracer, other()))


def and_(one: Any, other: Callable[[], Any]) -> Any:
    """``one and other()``."""
    tracer = current()
    if tracer is None or is_decided(one):
        return one and other()
    return value_of(tracer, one, other, lambda: one)


def or_(one: Any, other: Callable[[], Any]) -> Any:
    """``one or other()``."""
    tracer = current()
    if tracer is None or is_decided(one):
        return one or other()
    return value_of(tracer, one, lambda: one, other)


def not_(value: Any) -> Any:
    """``not value``."""
    tracer = current()
    if tracer is None or is_decided(value):
        return not value
    from jitkernels.frontends.flow.state import number
    from jitkernels.graph.construct import elementwise

    return number(tracer, elementwise("logical_not", as_bool(tracer, value).node), bool)
