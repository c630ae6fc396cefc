"""The functions of `jitkernels.maths` run over arrays, and their errors."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
from in_lanes import results

from jitkernels.maths import table

Array = np.ndarray[Any, Any]
DTYPES = ("float32", "float64")


FUNCTIONS = {
    (stem, dtype): table.function(name, dtype)
    for name, (_, stem) in table.MODULES.items()
    for dtype in DTYPES
}
"""By the names that C has for them, and dtype."""


def computed(name: str, *arguments: Array, lanes: Sequence[int] = (1,)) -> dict[int, Array]:
    """What a function gives for the elements of arrays of one dtype, in each of so many lanes."""
    count = arguments[0].size
    filled = [np.resize(argument, -(-count // 32) * 32) for argument in arguments]
    function = FUNCTIONS[name, arguments[0].dtype.name]
    assert function is not None, name
    found = results(function, filled, lanes)
    return {number: outs[0][:count] for number, outs in found.items()}


def units_off(got: Array, truth: Callable[..., Any], *arguments: Array) -> Array:
    """The error of each result in units of the last place of the true one; infinite where one is no number."""
    info = np.finfo(got.dtype)
    off = np.empty(got.size)
    with mpmath.workprec(160):
        for i, (found, *given) in enumerate(zip(got.tolist(), *(a.tolist() for a in arguments), strict=True)):
            true = truth(*map(mpmath.mpf, given))
            if mpmath.isnan(true) or not np.isfinite(found):
                rounded = (
                    np.nan
                    if mpmath.isnan(true)
                    else float(true)
                    if abs(true) <= info.max
                    else np.copysign(np.inf, float(mpmath.sign(true)))
                )
                off[i] = 0 if found == rounded or (found != found and rounded != rounded) else np.inf
            else:
                exponent = max(mpmath.frexp(true)[1], info.minexp + 1)
                off[i] = abs(mpmath.ldexp(mpmath.mpf(found) - true, info.nmant + 1 - exponent))
    return off
