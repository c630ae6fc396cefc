"""Run the functions of `jitkernels.microkernels.maths` over arrays, and compute their errors."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from in_lanes import results

from jitkernels.microkernels.maths import function_table

Array = np.ndarray[Any, Any]
DTYPES = ("float32", "float64")


FUNCTIONS = {
    (stem, dtype): function_table.function(name, dtype)
    for name, (_, stem) in function_table.MODULES.items()
    for dtype in DTYPES
}
"""Functions by C name and dtype."""


def computed(name: str, *arguments: Array, lanes: Sequence[int] = (1,)) -> dict[int, Array]:
    """Return the results of a function for arrays of one dtype, with `lanes` lanes."""
    count = arguments[0].size
    filled = [np.resize(argument, -(-count // 32) * 32) for argument in arguments]
    function = FUNCTIONS[name, arguments[0].dtype.name]
    assert function is not None, name
    result_by_lanes = results(function, filled, lanes)
    return {number: outs[0][:count] for number, outs in result_by_lanes.items()}


def units_off(got: Array, truth: Callable[..., Any], *arguments: Array) -> Array:
    """Return the error of each result in units of the last place of the true one; infinite if just one is NaN."""
    info = np.finfo(got.dtype)
    off = np.empty(got.size)
    with mpmath.workprec(160):
        for i, (result, *operands) in enumerate(zip(got.tolist(), *(a.tolist() for a in arguments), strict=True)):
            true = truth(*map(mpmath.mpf, operands))
            if mpmath.isnan(true) or not np.isfinite(result):
                rounded = (
                    np.nan
                    if mpmath.isnan(true)
                    else float(true)
                    if abs(true) <= info.max
                    else np.copysign(np.inf, float(mpmath.sign(true)))
                )
                off[i] = 0 if result == rounded or (result != result and rounded != rounded) else np.inf
            else:
                exponent = max(mpmath.frexp(true)[1], info.minexp + 1)
                off[i] = abs(mpmath.ldexp(mpmath.mpf(result) - true, info.nmant + 1 - exponent))
    return off
