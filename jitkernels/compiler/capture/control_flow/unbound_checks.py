"""Runtime hooks of rewritten functions for reads of unbound variables and for caught exceptions."""

from types import TracebackType
from typing import Any

from jitkernels.compiler.capture.control_flow.loop_state import UNSET
from jitkernels.compiler.capture.control_flow.trace_branch import is_decided
from jitkernels.compiler.capture.trace_context import current, is_package_file
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise


def check_bound(name: str, value: Any, has: Any = True) -> Any:
    """The value of a variable that is bound if `has` is true; otherwise the call bails out and Python raises."""
    if _is_unbound(value, has):
        text = f"cannot access local variable '{name}' where it is not associated with a value"
        raise UnboundLocalError(text)
    return value


def check_free_bound(name: str, value: Any, has: Any = True) -> Any:
    """The same for a free variable of an enclosing function, for which Python raises NameError."""
    if _is_unbound(value, has):
        text = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
        raise NameError(text)
    return value


def _is_unbound(value: Any, has: Any) -> bool:
    """Whether a variable is surely unbound. Where only the compiled code knows, add a runtime guard."""
    tracer = current()
    if value is UNSET or is_decided(has):
        return value is UNSET or not has
    lacks = elementwise("logical_not", has.node)
    checks = tracer.checks if tracer is not None else []
    if not any(known.operation == lacks.operation and known.inputs == lacks.inputs for known in checks):
        checks.append(lacks)
    return False


def check_caught(error: BaseException) -> BaseException:
    """An exception that the function has caught.

    The text of one that the package raised may depend on the sizes of this call.
    """
    if current() is None:
        return error
    last: TracebackType | None = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is not None and is_package_file(last.tb_frame.f_code.co_filename):
        raise UnsupportedError(f"the text of the {type(error).__name__} that is caught here differs between calls")
    return error
