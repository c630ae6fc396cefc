"""The two measures of the contest as decorators: seconds of each call, and the error of each answer."""

import functools
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np

Given = ParamSpec("Given")
Answer = TypeVar("Answer", covariant=True)
log = logging.getLogger("jitkernels.contest")


class Timed(Protocol[Given, Answer]):
    """A function that keeps in `seconds` how long each call took, the first one with what it compiled."""

    seconds: list[float]

    def __call__(self, *arguments: Given.args, **named: Given.kwargs) -> Answer: ...


class Judged(Protocol[Given, Answer]):
    """A function that keeps in `errors` how far each answer was from the truth."""

    errors: list[float]

    def __call__(self, *arguments: Given.args, **named: Given.kwargs) -> Answer: ...


def timed(function: Callable[Given, Answer]) -> Timed[Given, Answer]:
    """Measure each call of a function: its seconds are added to the list ``seconds`` and logged at level INFO.

    A call ends when its answer is there: what some libraries compute later (objects with ``block_until_ready``) is
    waited for. A call that raises is not counted.
    """

    @functools.wraps(function)
    def measured(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        begin = perf_counter()
        answer = function(*arguments, **named)
        wait = getattr(answer, "block_until_ready", None)
        if wait is not None:
            wait()
        seconds = perf_counter() - begin
        found.seconds.append(seconds)
        log.info("%s took %.3g s", measured.__name__, seconds)
        return answer

    found = cast("Timed[Given, Answer]", measured)
    found.seconds = []
    return found


def accuracy(truth: Any) -> Callable[[Callable[Given, Answer]], Judged[Given, Answer]]:
    """Measure each answer of a function: its error is added to the list ``errors`` and logged at level INFO.

    truth: the right answer, or a function of the same arguments that gives it. The error is the largest absolute
    difference of any element, NaN where one of both is NaN alone. Raises ValueError if the shapes do not broadcast.
    """

    def judge(function: Callable[Given, Answer]) -> Judged[Given, Answer]:
        @functools.wraps(function)
        def judged(*arguments: Given.args, **named: Given.kwargs) -> Answer:
            answer = function(*arguments, **named)
            right = truth(*arguments, **named) if callable(truth) else truth
            error = distance(answer, right)
            found.errors.append(error)
            log.info("%s is off by %.3g", judged.__name__, error)
            return answer

        found = cast("Judged[Given, Answer]", judged)
        found.errors = []
        return found

    return judge


def distance(answer: Any, right: Any) -> float:
    """The largest absolute difference of any element, in the wider of both types."""
    got, expected = np.asarray(answer), np.asarray(right)
    wide = np.result_type(got.dtype, expected.dtype, np.float64)
    with np.errstate(all="ignore"):
        off = np.abs(np.subtract(got, expected, dtype=wide))
    off = np.where((got == expected) | (np.isnan(got) & np.isnan(expected)), off.dtype.type(0), off)
    return float(off.max(initial=0.0))
