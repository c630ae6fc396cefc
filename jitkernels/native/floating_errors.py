"""Whether NumPy is to raise, call or print where a floating-point operation fails, which compiled code does not tell.

`numpy.errstate` keeps its settings in a context variable: a capsule, which points to a word of three bits for each kind
of error. 0 and 1, to ignore it and to warn, are what compiled code is for; with any other the plain function is called.
"""

import ctypes
import functools
from typing import Any

import numpy as np
from numpy._core import umath

TELLING = 0o6666
"""The bits of the word of which none is set if all errors are ignored or warned of."""
POINTER = 16
"""Bytes from the start of a capsule to its pointer."""
variable = umath._extobj_contextvar


def are_told() -> bool:
    """Whether NumPy raises, calls or prints in this context."""
    return any(choice not in ("ignore", "warn") for choice in np.geterr().values())


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
