"""What rewritten functions call where a variable may have no value, and where they catch an exception."""

from types import TracebackType
from typing import Any

from jitkernels.frontends.flow.branches import is_decided
from jitkernels.frontends.flow.state import UNSET
from jitkernels.frontends.tracer import current, is_ours
from jitkernels.graph.construct import UnknownError, elementwise


def bound(name: str, value: Any, has: Any = True) -> Any:
    """The value of a variable that has one if a bool is true. Else Python raises: code leaves such calls to it."""
    if _lacks(value, has):
        text = f"cannot access local variable '{name}' where it is not associated with a value"
        raise UnboundLocalError(text)
    return value


def bound_around(name: str, value: Any, has: Any = True) -> Any:
    """The same of a variable of a function around, for which Python raises another exception."""
    if _lacks(value, has):
        text = (
            f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        )
        raise NameError(text)
    return value


def _lacks(value: Any, has: Any) -> bool:
    """Whether a variable surely has no value. Where only the running code knows, it tests that."""
    tracer = current()
    if value is UNSET or is_decided(has):
        return value is UNSET or not has
    lacks = elementwise("logical_not", has.node)
    checks = tracer.checks if tracer is not None else []
    if not any(one.operation == lacks.operation and one.inputs == lacks.inputs for one in checks):
        checks.append(lacks)
    return False


def caught(error: BaseException) -> BaseException:
    """An exception that the function caught: if it is not its own, its text may tell of the sizes of this call."""
    if current() is None:
        return error
    last: TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None and is_ours(last.tb_frame.f_code.co_filename):
        raise UnknownError(
            f"the {type(error).__name__} that is caught here has a text of its own in each call"
        )
    return error
