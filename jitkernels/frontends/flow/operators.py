"""What rewritten functions call: Python's own control flow where the trace knows enough, else loops and branches."""

import builtins
import itertools
from collections.abc import Callable
from typing import Any

from jitkernels.errors import TracingError
from jitkernels.frontends.flow import numbers as _numbers  # noqa: F401  # the table of what traced functions call
from jitkernels.frontends.flow.branches import as_bool, choose, is_decided, value_of
from jitkernels.frontends.flow.loops import Count, Loop, unrolled
from jitkernels.frontends.flow.state import UNSET, State
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer, current, user_frame
from jitkernels.frontends.whole import Whole
from jitkernels.graph.construct import UnknownError

__all__ = ["UNSET", "State", "both", "and_", "chosen", "either", "for_", "if_", "not_", "or_", "range_", "while_"]
SHORT, MOST_ROUNDS = 8, 4096
"""Rounds of a loop that are always, and at most, run one after another while tracing."""


class Range:
    """A ``range`` whose limits only the running code knows."""

    def __init__(self, begin: Any, end: Any, step: int) -> None:
        self.count = Count(begin, end, step)

    def __iter__(self) -> Any:
        """As Python has it, where code is made for these limits alone."""
        return iter(range(*self.count))


def range_(function: Any, *limits: Any) -> Any:
    """``range(...)``."""
    if function is not builtins.range or not any(type(one) in (Whole, Traced) for one in limits):
        return function(*limits)
    step = limits[2] if len(limits) == 3 else 1
    if type(step) is not int or step == 0 or not 1 <= len(limits) <= 3 or not all(map(_is_int, limits)):
        return function(*limits)
    return Range(0, limits[0], 1) if len(limits) == 1 else Range(limits[0], limits[1], step)


def _is_int(value: Any) -> bool:
    return type(value) in (int, Whole) or (type(value) is Traced and value.python is int)


def for_(values: Any, test: Callable[[], Any] | None, body: Callable[[Any], Any], state: State) -> None:
    """``for given in values: body(given)``, as long as the test holds."""
    tracer = current()
    count = _count_of(values)
    if tracer is None or count is None:
        unrolled_as_python(tracer, values, test, body, state)
        return
    rounds = None if type(values) is Range else len(values)
    if rounds is not None and rounds <= SHORT:
        unrolled_as_python(tracer, values, test, body, state)
        return
    if type(values) is Traced:
        rows, given = values, body
        body = lambda i: given(rows[i])  # noqa: E731
    _looped(tracer, Loop(tracer, state, count, test, body), values if type(values) is not Traced else None)


def _count_of(values: Any) -> Count | None:
    if type(values) is Range:
        return values.count
    if type(values) is range:
        return Count(values.start, values.stop, values.step)
    return None


def unrolled_as_python(tracer: Any, values: Any, test: Any, body: Any, state: State) -> None:
    """The loop as Python has it: the trace knows each round."""
    if tracer is None or test is None:
        for given in values:
            if test is not None and not test():
                return
            body(given)
        return
    unrolled(tracer, iter(values), test, body, state)


def _looped(tracer: Tracer, loop: Loop, values: Any) -> None:
    """A loop of the code, or rounds one after another where it cannot be one, and they are few."""
    try:
        loop.trace()
    except (UnknownError, TracingError) as error:
        place = _place(loop.state.line)
        tracer.reasons.append(f"{place}: {error}")
        if values is None or tracer.depth or any(type(one) is Traced for one in values_of(values)):
            raise
        if len(list(itertools.islice(_plain(values), MOST_ROUNDS + 1))) > MOST_ROUNDS:
            raise UnknownError(f"{place}: {error}") from None
        tracer.note(f"a loop is run round by round: {place}: {error}")
        unrolled_as_python(tracer, values, loop.test, loop.body, loop.state)


def values_of(values: Any) -> Any:
    """The limits of a range."""
    return values.count if type(values) is Range else ()


def _plain(values: Any) -> Any:
    """The rounds that there are in the call that is traced."""
    return range(*(one.value if type(one) is Whole else one for one in values.count)) if type(values) is Range else values


def _place(line: int) -> str:
    frame = user_frame()
    return f"{frame.f_code.co_filename if frame else ''}:{line}"


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
        place = _place(state.line)
        tracer.reasons.append(f"{place}: {error}")
        if tracer.depth:
            raise
        for _ in range(MOST_ROUNDS):
            goes_on = test()
            if not is_decided(goes_on):
                raise UnknownError(f"{place}: {error}") from None
            if not goes_on:
                return
            body()
        raise UnknownError(f"{place}: {error}") from None


def if_(test: Any, yes: Callable[[], Any], no: Callable[[], Any], state: State) -> None:
    """``if test: yes() else: no()``."""
    tracer = current()
    if tracer is None or is_decided(test):
        (yes if test else no)()
        return
    choose(tracer, test, yes, no, state)


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
    return value_of(tracer, one, lambda: as_bool(tracer, other()), lambda: False)


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
