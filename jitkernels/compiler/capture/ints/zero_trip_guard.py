"""Zero-trip guards: whether a loop runs at all, for variables that it binds or whose arrays it replaces."""

from jitkernels.compiler.capture.array_proxy import Traced
from jitkernels.compiler.capture.control_flow.iterables import LoopRange
from jitkernels.compiler.capture.ints import intervals
from jitkernels.compiler.capture.ints.int64_arithmetic import as_int
from jitkernels.compiler.capture.trace_context import Tracer
from jitkernels.compiler.ir.builder import UnknownError, elementwise


def is_certain(tracer: Tracer, count: LoopRange) -> bool:
    """Whether the intervals of the limits imply at least one iteration."""
    begin, end, step = count
    low, high = (intervals.interval(tracer, limit) for limit in ((begin, end) if step > 0 else (end, begin)))
    return low is not None and high is not None and intervals.is_at_least(high[0] - low[1], 1)


def is_decided(count: LoopRange | None) -> bool:
    """Whether the call's integers decide if the loop runs, so that guards can specialize the code."""
    return count is not None and Traced not in map(type, count)


def is_there(count: LoopRange) -> bool:
    """Whether the loop runs in this call; becomes a guard of the code."""
    return bool(count.begin < count.end if count.step > 0 else count.begin > count.end)


def is_missing(count: LoopRange) -> bool:
    """Whether the trip count is zero in this call; the code is specialized to such calls."""
    return is_decided(count) and not count.concrete_range and not is_there(count)


def expect(tracer: Tracer, count: LoopRange | None, name: str, line: int) -> None:
    """Guard that the loop runs: otherwise a variable is unbound, and Python raises."""
    if count is None:
        raise UnknownError(f"{name} may have no value after a loop: give it one before", line)
    if is_certain(tracer, count):
        return
    first, last = as_int(tracer, count.begin), as_int(tracer, count.end)
    tracer.checks.append(elementwise("greater_equal" if count.step > 0 else "less_equal", first, last))
