"""Exceptions that come from without, as those that handlers of signals raise: what they interrupt has not failed.

Nobody may take them for errors of their own, and go on.
"""

import dis
import functools
import signal
import types
from typing import Any

RAISE = dis.opmap["RAISE_VARARGS"]


def have_raised(error: BaseException) -> bool:
    """Whether an exception comes from a handler of a signal, such as one of `signal.alarm` that ends what takes long.

    Python calls handlers between any two instructions of the main thread, and what they raise comes from there: its
    traceback goes through the handler's code.
    """
    return is_behind(error.__traceback__)


def is_behind(trace: types.TracebackType | None) -> bool:
    """Whether a traceback goes through the code of a handler."""
    codes = {_code_of(signal.getsignal(one)) for one in signal.valid_signals()} - {None}
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def end_calls(error: BaseException) -> bool:
    """Whether an exception ends what is done, as Ctrl-C does: a function that is run has not raised it itself.

    The handler of Ctrl-C is no code of Python's, so what has not raised `KeyboardInterrupt` by a statement was
    interrupted.
    """
    return have_raised(error) or (
        isinstance(error, KeyboardInterrupt) and not _is_stated(error.__traceback__)
    )


def _is_stated(trace: types.TracebackType | None) -> bool:
    """Whether the innermost instruction of a traceback is that of a ``raise``."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_code[trace.tb_lasti] == RAISE


def _code_of(handler: Any) -> types.CodeType | None:
    """The code of a function, of a method, or of what objects that can be called do."""
    if handler is None or isinstance(handler, int):
        return None
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__"):
        handler = type(handler).__call__
    code = getattr(handler, "__code__", None)
    return code if isinstance(code, types.CodeType) else None
