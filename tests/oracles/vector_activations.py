"""The truth about elementwise activations."""

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle, sigmoid
from oracles.vector_functions import by_mpmath


def normal_distribution(x: AnyArray) -> AnyArray:
    """Phi(x), also where it is far below 1."""
    found = np.where(np.isnan(x), x, np.where(x < 0, WIDE(0), WIDE(1)))
    middle = np.abs(x) < 60
    found[middle] = by_mpmath("ncdf", x[middle])
    return found


@oracle
def vgelu(attr: Any, x: AnyArray) -> list[AnyArray]:
    if attr.form == "erf":
        return [x * normal_distribution(x)]
    root = np.sqrt(2 / WIDE(mpmath.nstr(mpmath.pi, 30)))
    return [x * sigmoid(2 * root * (x + WIDE("0.044715") * x**3))]


@oracle
def vsilu(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [x * sigmoid(x)]


@oracle
def vsoftplus(attr: Any, x: AnyArray) -> list[AnyArray]:
    return [np.where(x > 0, x, WIDE(0)) + np.log1p(np.exp(-np.abs(x)))]


@oracle
def swiglu(attr: Any, a: AnyArray, b: AnyArray) -> list[AnyArray]:
    return [a * sigmoid(a) * b]
