"""NumPy's floating-point error settings (`numpy.errstate`), read where compiled code cannot raise.

`numpy.errstate` keeps its settings in a context variable: a capsule, which points to a word of three bits per kind of
error. Compiled code supports 0 and 1, to ignore and to warn; any other setting (raise, call, print) falls back to the
plain function. So does a warning for underflow, which is off by default.
"""

import contextlib
import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core import umath

from jitkernels.runtime import fp_status

UNSUPPORTED = 0o6766
"""A mask of the word: zero if all errors are ignored or warned of, and underflow is ignored."""
WARNED = 0o1011
"""A mask of the word: nonzero if some error is warned of."""
POINTER = 16
"""Byte offset of the pointer in a capsule."""
variable = umath._extobj_contextvar


def numpy_raises_or_calls() -> bool:
    """Return whether NumPy raises, calls or prints in this context, or warns of underflow."""
    choices = np.geterr()
    return any(choice not in ("ignore", "warn") for choice in choices.values()) or choices["under"] == "warn"


BITS = {1: "divide", 2: "over", 8: "invalid"}
"""NumPy's error bits in calls of an error handler, and the kinds of errors."""


KIND_TEXTS = {"divide": "divide by zero", "over": "overflow", "under": "underflow", "invalid": "invalid value"}
"""The beginnings of NumPy's warnings, by kind."""


class Recording:
    """A writer of NumPy's messages during a trace: ``np.errstate(over="log", call=Recording(write))``."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write


def ignored_unless_recording() -> contextlib.AbstractContextManager[object]:
    """A context for constant folding: errors are recorded if a trace records them, and ignored otherwise."""
    if type(np.geterrcall()) is Recording:
        return contextlib.nullcontext()
    return np.errstate(all="ignore")


class FlagCollector:
    """Collects the floating-point errors of NumPy and of compiled code: ``with collector.collecting(): ...``."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()

    def __call__(self, _: str, number: int) -> None:
        """NumPy's error handler."""
        self.kinds.update(kind for bit, kind in BITS.items() if number & bit)

    def collecting(self) -> np.errstate:
        """A context in which this object handles errors."""
        return np.errstate(divide="call", over="call", invalid="call", under="ignore", call=self)


def run_collecting(run: Callable[[int], int], argument: int) -> int:
    """Run a compiled function and return its status; add its floating-point flags to the active `FlagCollector`."""
    collector = np.geterrcall()
    if type(collector) is not FlagCollector:
        return run(argument)
    fp_status.take()
    status = run(argument)
    collector.kinds.update(fp_status.kinds(fp_status.take()))
    return status


def _word() -> int:
    capsule = id(variable.get())
    return ctypes.c_int.from_address(ctypes.c_void_p.from_address(capsule + POINTER).value or 0).value


@functools.cache
def is_word_known() -> bool:
    """Verify the meaning of the word's bits in this NumPy."""
    choices: tuple[Any, ...] = ("ignore", "warn", "raise", "log")
    codes = {"ignore": 0, "warn": 1, "raise": 2, "log": 5}
    try:
        for shift_by in range(4):
            divide, over, under, invalid = settings = choices[shift_by:] + choices[:shift_by]
            with np.errstate(divide=divide, over=over, under=under, invalid=invalid):
                results = [_word() >> shift & 7 for shift in (0, 3, 6, 9)]
            if results != [codes[setting] for setting in settings]:
                return False
    except (AttributeError, TypeError, ValueError):
        return False
    return True
