"""Functions of the C library, for results that must have its bits: those of NumPy's random generators."""

from typing import Any

import numpy as np

from jitkernels.codegen.python.outlined import C_FUNCTIONS
from jitkernels.codegen.source_protocol import noinline

_exp: Any
_log: Any
_log1p: Any
_exp, _log, _log1p = (C_FUNCTIONS[f"jk_libm_{name}"] for name in ("exp", "log", "log1p"))


@noinline()
def libm_exp_float64(x: np.float64) -> Any:
    """The exponential of the C library: at most 1 ULP in glibc."""
    return _exp(x)


@noinline()
def libm_log_float64(x: np.float64) -> Any:
    """The logarithm of the C library: at most 1 ULP in glibc."""
    return _log(x)


@noinline()
def libm_log1p_float64(x: np.float64) -> Any:
    """``log(1 + x)`` of the C library: at most 1 ULP in glibc."""
    return _log1p(x)
