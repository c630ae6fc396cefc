"""A progress message on a terminal for work that takes longer than a second."""

import contextlib
import sys
from _thread import _local  # as `threading.local`
from collections.abc import Iterator

PATIENCE = 1.0
"""Seconds before the message is written."""
_waiting = _local()


@contextlib.contextmanager
def progress_message(what: str) -> Iterator[None]:
    """Write "jitkernels: <what> ..." to a terminal if the block takes more than `PATIENCE` seconds; nothing elsewhere.

    A nested block writes nothing: the outer message explains the wait.
    """
    if sys.stderr is None or not sys.stderr.isatty() or getattr(_waiting, "here", False):
        yield
        return
    import threading

    timer = threading.Timer(PATIENCE, _say, [what])
    timer.daemon = True
    timer.start()
    _waiting.here = True
    try:
        yield
    finally:
        _waiting.here = False
        timer.cancel()


def _say(what: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal is closed
        sys.stderr.write(f"jitkernels: {what} ...\n")
        sys.stderr.flush()
