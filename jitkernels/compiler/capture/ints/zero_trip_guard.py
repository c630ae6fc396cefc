"""Whether a loop has a round at all, for variables that without one have no value, or the array of others."""

from jitkernels.frontends.flow import ranges
from jitkernels.frontends.flow.along import Count
from jitkernels.frontends.flow.ints import as_int
from jitkernels.frontends.traced import Traced
from jitkernels.frontends.tracer import Tracer
from jitkernels.graph.construct import UnknownError, elementwise


def is_certain(tracer: Tracer, count: Count) -> bool:
    """Whether the bounds of its limits tell that there is a round."""
    begin, end, step = count
    low, high = (ranges.interval(tracer, one) for one in ((begin, end) if step > 0 else (end, begin)))
    return low is not None and high is not None and ranges.is_at_least(high[0] - low[1], 1)


def is_decided(count: Count | None) -> bool:
    """Whether the numbers of a call tell if there is a round, so that code can be made for these alone."""
    return count is not None and Traced not in map(type, count)


def is_there(count: Count) -> bool:
    """Whether there is a round in this call, and in all that the code is for."""
    return bool(count.begin < count.end if count.step > 0 else count.begin > count.end)


def is_missing(count: Count) -> bool:
    """Whether there is none in this call; then the code is for such calls."""
    return is_decided(count) and not count.now and not is_there(count)


def expect(tracer: Tracer, count: Count | None, name: str, line: int) -> None:
    """Let Python raise where a variable has no value, as there was no round."""
    if count is None:
        raise UnknownError(f"{name} may have no value after a loop: give it one before", line)
    if is_certain(tracer, count):
        return
    first, last = as_int(tracer, count.begin), as_int(tracer, count.end)
    tracer.checks.append(elementwise("greater_equal" if count.step > 0 else "less_equal", first, last))
