"""Whether results are as near to the true ones as their row promises: the one comparison of tests and tuner."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels import bfloat16, dtypes
from jitkernels.attrs.base import KernelAttr, Tolerance
from jitkernels.signature import AnyArray

NEAREST = 0.501
"""A tolerance of 0 ULP asks for the nearest value: half a unit, and what long double itself may be off."""
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def allowed(
    attr: KernelAttr, arrays: Sequence[AnyArray], true: Sequence[AnyArray], slack: float = 1
) -> list[AnyArray]:
    """How far each element of each output may be from the true one; infinite where nothing is promised.

    `arrays` are those of the call, as they were before it.
    """
    tolerance = attr.tolerance()
    outputs = zip(attr.signature().outputs, true, terms(attr, arrays), strict=True)
    return [distance(tolerance, parameter.dtype, right, sums, slack) for parameter, right, sums in outputs]


def terms(attr: KernelAttr, arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """`KernelAttr.absolute_terms`; where infinities take part, of the finite numbers beside them.

    NaN stays, and promises nothing.
    """
    if not attr.tolerance().terms:
        return [np.broadcast_to(0.0, array.shape) for array in attr.signature().outputs]
    signature = attr.signature()
    held = [p.as_declared(p.numbers(array)) for p, array in zip(signature.arrays, arrays, strict=True)]
    wide = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in held]
    with np.errstate(all="ignore"):
        found = signature.outputs_as_given(attr.absolute_terms(wide))
        if all(bool(np.isfinite(sums).all()) for sums in found):
            return found
        there = attr.absolute_terms([np.where(np.isfinite(array), array, 0) for array in wide])
        finite = signature.outputs_as_given(there)
        return [np.where(np.isinf(a), b, a) for a, b in zip(found, finite, strict=True)]


def distance(tolerance: Tolerance, dtype: str, true: AnyArray, sums: AnyArray, slack: float = 1) -> AnyArray:
    """How far results may be from the true ones, which are made of terms with these absolute sums."""
    if not bfloat16.is_float(dtype):
        return np.zeros(true.shape)
    limits = bfloat16.limits(dtype)
    if dtype == bfloat16.NAME:
        with np.errstate(all="ignore"):
            before = distance(tolerance, dtypes.named(dtype).computed, true, sums, slack)
            if tolerance.ulp or tolerance.terms:  # else numbers are moved, not computed
                before = before + limits.tiny  # instructions take subnormal results for zeros
            return np.asarray(before + slack * NEAREST * unit(np.abs(true) + before, dtype))
    with np.errstate(all="ignore"):
        found = max(slack * tolerance.ulp, NEAREST) * unit(true, dtype)
        if not tolerance.terms:
            return np.asarray(found)
        rounding = np.maximum(sums * float(limits.eps), float(limits.smallest_subnormal))
        found = found + slack * tolerance.terms * rounding
        # Intermediate sums may be as large as all terms together, in whichever order they come.
        return np.where(sums < float(limits.max) / 2, found, np.inf)


def unit(value: AnyArray, dtype: str) -> AnyArray:
    """A unit in the last place: from the number of that dtype at the value to the next larger one."""
    limits = bfloat16.limits(dtype)
    if dtype == bfloat16.NAME:
        _, exponents = np.frexp(np.where(np.isfinite(value), value, 1).astype(np.float64))
        found = np.ldexp(1.0, np.maximum(exponents - 8, -133))
        return np.asarray(np.where(np.isfinite(value), found, limits.max * limits.epsneg))
    with np.errstate(all="ignore"):
        found = np.abs(np.spacing(np.abs(value).astype(dtype))).astype(_wide(value, dtype))
    return np.asarray(
        np.where(np.isfinite(found), found, found.dtype.type(limits.max) * float(limits.epsneg))
    )


def _wide(value: AnyArray, dtype: str) -> Any:
    """A type in which differences from the true value are exact enough: double is for numbers of half its size."""
    return np.float64 if dtypes.named(dtype).size < 8 else np.result_type(value.dtype, np.float64).type


def beyond(got: AnyArray, true: AnyArray, within: AnyArray) -> Mask:
    """Which elements are further from the true value than allowed; integers must be equal.

    NaN agrees with NaN alone, and an infinity with itself and with what is too large for the dtype.
    """
    if got.dtype.kind != "f":
        return np.asarray(got != true)
    wide = _wide(true, got.dtype.name)
    with np.errstate(all="ignore"):
        right = true.astype(wide)
        fine = np.abs(got.astype(wide) - right) <= within
        fine |= got == right
        if not fine.all():
            unknown = np.isnan(right)
            fine |= np.where(unknown, np.isnan(got), np.isinf(within))
            largest = float(np.finfo(got.dtype).max)
            fine |= (
                np.isinf(got) & (np.signbit(got) == np.signbit(right)) & (np.abs(right) + within > largest)
            )
    return np.asarray(~fine)
