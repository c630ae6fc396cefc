"""Whether a candidate computes what the reference does, as far as the tuner looks."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.base import KernelAttr, Tolerance
from jitkernels.signature import AnyArray

MOST_COMPARED = 1 << 20
"""Elements of an output beyond which evenly chosen ones are compared: comparing takes longer than computing."""


def first_difference(
    attr: KernelAttr, given: Sequence[AnyArray], expected: Sequence[AnyArray], got: Sequence[AnyArray]
) -> str | None:
    """What is wrong with the arrays after a call: an input that changed, an output that is not the reference's."""
    tolerance = attr.tolerance()
    # Both sides may be off by the tolerance, in opposite directions.
    both = Tolerance(2 * tolerance.ulp, 2 * tolerance.absolute)
    for parameter, before, right, value in zip(attr.signature().arrays, given, expected, got, strict=True):
        if not parameter.output:
            if not np.array_equal(value, before):
                return f"it wrote to {parameter.name}, which is an input"
            continue
        step = max(1, value.size // MOST_COMPARED) | 1  # odd, so that it meets every column
        off = beyond(value.reshape(-1)[::-step], right.reshape(-1)[::-step], both)
        if off.any():
            flat = value.size - 1 - step * int(np.flatnonzero(off)[-1])
            at = tuple(int(i) for i in np.unravel_index(flat, value.shape))
            return f"{parameter.name}{list(at)} is {value[at]!r}, the reference gives {right[at]!r}"
    return None


def beyond(got: AnyArray, expected: AnyArray, tolerance: Tolerance) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Which elements are further from the expected value than the tolerance allows.

    A unit in the last place is the spacing of the result's dtype at the expected value; NaN agrees with
    NaN, an infinity with itself.
    """
    if got.dtype.kind != "f":
        return np.not_equal(got, expected)
    wide = np.result_type(expected.dtype, np.float64).type
    with np.errstate(all="ignore"):
        unit = np.abs(np.spacing(np.abs(expected).astype(got.dtype))).astype(wide)
        unit = np.where(np.isfinite(unit), unit, np.spacing(np.finfo(got.dtype).max).astype(wide))
        distance = np.abs(got.astype(wide) - expected.astype(wide))
        fine = distance <= tolerance.ulp * unit + wide(tolerance.absolute)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    result: np.ndarray[Any, np.dtype[np.bool_]] = ~(fine | same)
    return result
