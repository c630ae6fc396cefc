"""Whether NumPy is to raise, call or print where a floating-point operation fails, which compiled code does not tell.

`numpy.errstate` keeps its settings in a context variable: a capsule, which points to a word of three bits for each kind
of error. 0 and 1, to ignore it and to warn, are what compiled code is for; with any other the plain function is called.
So it is where NumPy is to warn of underflow, which it does not unless it is asked to.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core import umath

from jitkernels.native import processor_flags

TELLING = 0o6766
"""The bits of the word of which none is set if all errors are ignored or warned of, and underflow is ignored."""
WARNED = 0o1011
"""The bits of which one is set if errors are warned of."""
POINTER = 16
"""Bytes from the start of a capsule to its pointer."""
variable = umath._extobj_contextvar


def are_told() -> bool:
    """Whether NumPy raises, calls or prints in this context, or warns of underflow."""
    choices = np.geterr()
    return any(choice not in ("ignore", "warn") for choice in choices.values()) or choices["under"] == "warn"


BITS = {1: "divide", 2: "over", 8: "invalid"}
"""What stands for the kinds of errors where NumPy calls a function for them."""


class Heard:
    """Finds out which errors there are while NumPy and compiled code take turns: ``with heard.listening(): ...``."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()

    def __call__(self, _: str, number: int) -> None:
        """NumPy tells errors."""
        self.kinds.update(kind for bit, kind in BITS.items() if number & bit)

    def listening(self) -> np.errstate:
        """A context in which errors are told to this."""
        return np.errstate(divide="call", over="call", invalid="call", under="ignore", call=self)


def heard(run: Callable[[int], int], argument: int) -> int:
    """The status of a compiled function; if somebody is listening, with its errors told."""
    listener = np.geterrcall()
    if type(listener) is not Heard:
        return run(argument)
    processor_flags.take()
    status = run(argument)
    listener.kinds.update(processor_flags.kinds(processor_flags.take()))
    return status


def _word() -> int:
    capsule = id(variable.get())
    return ctypes.c_int.from_address(ctypes.c_void_p.from_address(capsule + POINTER).value or 0).value


@functools.cache
def is_word_known() -> bool:
    """Whether the word means what this module takes it for, in the NumPy that there is."""
    choices: tuple[Any, ...] = ("ignore", "warn", "raise", "log")
    meant = {"ignore": 0, "warn": 1, "raise": 2, "log": 5}
    try:
        for turn in range(4):
            divide, over, under, invalid = settings = choices[turn:] + choices[:turn]
            with np.errstate(divide=divide, over=over, under=under, invalid=invalid):
                found = [_word() >> shift & 7 for shift in (0, 3, 6, 9)]
            if found != [meant[one] for one in settings]:
                return False
    except (AttributeError, TypeError, ValueError):
        return False
    return True
