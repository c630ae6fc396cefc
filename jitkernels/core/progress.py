"""A word to whoever waits at a terminal for something that takes longer than a second."""

import contextlib
import sys
from _thread import _local  # as `threading.local`
from collections.abc import Iterator

PATIENCE = 1.0
"""Seconds before anything is said."""
_waiting = _local()


@contextlib.contextmanager
def saying(what: str) -> Iterator[None]:
    """Write "jitkernels: <what> ..." to a terminal if the block takes more than `PATIENCE`; nothing elsewhere.

    Inside another such block nothing is said: that one says what the waiting is for.
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
    with contextlib.suppress(OSError, ValueError):  # a terminal that is gone
        sys.stderr.write(f"jitkernels: {what} ...\n")
        sys.stderr.flush()
