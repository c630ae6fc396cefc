"""The truth about elementary functions."""

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle, tanh


def by_mpmath(name: str, x: AnyArray) -> AnyArray:
    """A function of finite numbers from 50 digits; exact arguments go in as two doubles."""
    function = getattr(mpmath, name)
    found = np.empty(x.shape, WIDE)
    for place, value in np.ndenumerate(x):
        high = float(value)
        found[place] = WIDE(
            mpmath.nstr(function(mpmath.mpf(high) + mpmath.mpf(float(value - WIDE(high)))), 30)
        )
    return found


def erf(x: AnyArray) -> AnyArray:
    """From its series where the result is not 1, or x itself times what it begins with."""
    found = np.where(np.isnan(x), x, np.copysign(WIDE(1), x))
    middle = np.abs(x) < 7
    small = np.abs(x) < WIDE(1e-30)
    found[middle] = by_mpmath("erf", x[middle])
    found[small] = x[small] * (2 / np.sqrt(WIDE(mpmath.nstr(mpmath.pi, 30))))
    return found


@oracle
def vtanh(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [tanh(x)]


@oracle
def vlog(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.log(x)]


@oracle
def verf(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [erf(x)]


@oracle
def vsin(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.sin(x)]


@oracle
def vcos(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.cos(x)]


@oracle
def vpow(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [np.power(x, y)]
