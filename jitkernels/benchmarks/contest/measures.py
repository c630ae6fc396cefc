"""The two measurements of the contest as decorators: seconds of each call, and the error of each result."""

import functools
import logging
from collections.abc import Callable
from time import perf_counter
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer", covariant=True)
log = logging.getLogger("jitkernels.contest")


class Timed(Protocol[Arguments, Answer]):
    """A function that records in `seconds` the duration of each call; the first one includes compilation."""

    seconds: list[float]

    def __call__(self, *arguments: Arguments.args, **named: Arguments.kwargs) -> Answer: ...


class Judged(Protocol[Arguments, Answer]):
    """A function that records in `errors` the difference between each result and the true one."""

    errors: list[float]

    def __call__(self, *arguments: Arguments.args, **named: Arguments.kwargs) -> Answer: ...


def timed(function: Callable[Arguments, Answer]) -> Timed[Arguments, Answer]:
    """Measure each call of a function: its seconds are appended to the list ``seconds`` and logged at level INFO.

    A call ends when its result is complete: asynchronous results (objects with ``block_until_ready``) are awaited. A
    call that raises is not counted.
    """

    @functools.wraps(function)
    def measured(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        begin = perf_counter()
        answer = function(*arguments, **named)
        wait = getattr(answer, "block_until_ready", None)
        if wait is not None:
            wait()
        seconds = perf_counter() - begin
        wrapper.seconds.append(seconds)
        log.info("%s took %.3g s", measured.__name__, seconds)
        return answer

    wrapper = cast("Timed[Arguments, Answer]", measured)
    wrapper.seconds = []
    return wrapper


def accuracy(truth: Any) -> Callable[[Callable[Arguments, Answer]], Judged[Arguments, Answer]]:
    """Measure each result of a function: its error is appended to the list ``errors`` and logged at level INFO.

    truth: the true result, or a function that computes it from the same arguments. The error is the largest absolute
    difference of any element, NaN where exactly one of both is NaN. Raises ValueError if the shapes do not broadcast.
    """

    def judge(function: Callable[Arguments, Answer]) -> Judged[Arguments, Answer]:
        @functools.wraps(function)
        def judged(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
            answer = function(*arguments, **named)
            right = truth(*arguments, **named) if callable(truth) else truth
            error = distance(answer, right)
            wrapper.errors.append(error)
            log.info("%s is off by %.3g", judged.__name__, error)
            return answer

        wrapper = cast("Judged[Arguments, Answer]", judged)
        wrapper.errors = []
        return wrapper

    return judge


def distance(answer: Any, right: Any) -> float:
    """Return the largest absolute difference of any element, in the wider of both types."""
    got, expected = np.asarray(answer), np.asarray(right)
    wide = np.result_type(got.dtype, expected.dtype, np.float64)
    with np.errstate(all="ignore"):
        off = np.abs(np.subtract(got, expected, dtype=wide))
    off = np.where((got == expected) | (np.isnan(got) & np.isnan(expected)), off.dtype.type(0), off)
    return float(off.max(initial=0.0))
