"""Functions that NumPy lacks, in NumPy's own terms: what the interpreter computes them by."""

import math
from typing import Any

import numpy as np

_erf, _erfc = np.frompyfunc(math.erf, 1, 1), np.frompyfunc(math.erfc, 1, 1)


def erf(x: Any) -> Any:
    """The error function."""
    return np.asarray(_erf(x)).astype(np.asarray(x).dtype)


def erfc(x: Any) -> Any:
    """``1 - erf(x)``."""
    return np.asarray(_erfc(x)).astype(np.asarray(x).dtype)


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, np.asarray(x).dtype.type(1)) / (1 + small)


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))``."""
    return np.logaddexp(x, np.asarray(x).dtype.type(0))
