"""Exceptions raised by signal handlers: the interrupted operation has not failed itself.

Code that handles errors must let these through instead of treating them as its own failure.
"""

import dis
import functools
import signal
import types
from typing import Any

RAISE = dis.opmap["RAISE_VARARGS"]


def raised_by_signal_handler(error: BaseException) -> bool:
    """Whether a signal handler raised `error`, such as a SIGALRM handler that ends a long operation.

    Python calls handlers between any two instructions of the main thread, so the traceback of such an exception passes
    through the handler's code.
    """
    return is_behind(error.__traceback__)


def is_behind(trace: types.TracebackType | None) -> bool:
    """Whether a traceback passes through the code of a signal handler."""
    codes = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def end_calls(error: BaseException) -> bool:
    """Whether an exception interrupts the call, as Ctrl-C does, rather than being raised by the called function.

    The handler of Ctrl-C is not Python code, so a `KeyboardInterrupt` that no ``raise`` statement raised is an
    interrupt.
    """
    return raised_by_signal_handler(error) or (
        isinstance(error, KeyboardInterrupt) and not _is_raise_statement(error.__traceback__)
    )


def _is_raise_statement(trace: types.TracebackType | None) -> bool:
    """Whether the innermost instruction of a traceback is a ``raise`` statement."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_code[trace.tb_lasti] == RAISE


def _code_of(handler: Any) -> types.CodeType | None:
    """The code object of a function, of a method, or of a callable object's ``__call__``."""
    if handler is None or isinstance(handler, int):
        return None
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = type(handler).__call__
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, types.CodeType) else None
