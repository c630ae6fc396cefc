"""Check results against the error bound of their schema: the one comparison of tests and tuner."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.attrs.schema.base import KernelAttr, Tolerance
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import bfloat16, dtypes

NEAREST = 0.501
"""A tolerance of 0 ULP requires the nearest value: half a unit, plus the error of long double itself."""
Mask = np.ndarray[Any, np.dtype[np.bool_]]


def allowed(attr: KernelAttr, arrays: Sequence[AnyArray], true: Sequence[AnyArray], slack: float = 1) -> list[AnyArray]:
    """The error bound of each element of each output; infinite where there is no bound.

    `arrays` are the arguments as they were before the call.
    """
    tolerance = attr.tolerance()
    outputs = zip(attr.signature().outputs, true, terms(attr, arrays), strict=True)
    return [distance(tolerance, parameter.dtype, right, sums, slack) for parameter, right, sums in outputs]


def terms(attr: KernelAttr, arrays: Sequence[AnyArray]) -> list[AnyArray]:
    """`KernelAttr.absolute_terms`; where infinities occur, those of the finite numbers beside them.

    NaN stays, and means that there is no bound.
    """
    if not attr.tolerance().terms:
        return [np.broadcast_to(0.0, array.shape) for array in attr.signature().outputs]
    signature = attr.signature()
    values = [p.as_declared(p.numbers(array)) for p, array in zip(signature.arrays, arrays, strict=True)]
    wide = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in values]
    with np.errstate(all="ignore"):
        sums = signature.outputs_as_given(attr.absolute_terms(wide))
        if all(bool(np.isfinite(total).all()) for total in sums):
            return sums
        finite_terms = attr.absolute_terms([np.where(np.isfinite(array), array, 0) for array in wide])
        finite = signature.outputs_as_given(finite_terms)
        return [np.where(np.isinf(a), b, a) for a, b in zip(sums, finite, strict=True)]


def distance(tolerance: Tolerance, dtype: str, true: AnyArray, sums: AnyArray, slack: float = 1) -> AnyArray:
    """The error bound of results `true` whose terms have the absolute sums `sums`."""
    if not bfloat16.is_float(dtype):
        return np.zeros(true.shape)
    limits = bfloat16.limits(dtype)
    if dtype == bfloat16.BFLOAT16_NAME:
        with np.errstate(all="ignore"):
            before = distance(tolerance, dtypes.named(dtype).computed, true, sums, slack)
            if tolerance.ulp or tolerance.terms:  # else data is copied, not computed
                before = before + limits.tiny  # instructions flush subnormal results to zero
            return np.asarray(before + slack * NEAREST * unit(np.abs(true) + before, dtype))
    with np.errstate(all="ignore"):
        bound = max(slack * tolerance.ulp, NEAREST) * unit(true, dtype)
        if not tolerance.terms:
            return np.asarray(bound)
        rounding = np.maximum(sums * float(limits.eps), float(limits.smallest_subnormal))
        bound = bound + slack * tolerance.terms * rounding
        # Intermediate sums may be as large as all terms together, in any order of summation.
        return np.where(sums < float(limits.max) / 2, bound, np.inf)


def unit(value: AnyArray, dtype: str) -> AnyArray:
    """A unit in the last place: from the number of that dtype at `value` to the next larger one."""
    limits = bfloat16.limits(dtype)
    if dtype == bfloat16.BFLOAT16_NAME:
        _, exponents = np.frexp(np.where(np.isfinite(value), value, 1).astype(np.float64))
        spacing = np.ldexp(1.0, np.maximum(exponents - 8, -133))
        return np.asarray(np.where(np.isfinite(value), spacing, limits.max * limits.epsneg))
    with np.errstate(all="ignore"):
        spacing = np.abs(np.spacing(np.abs(value).astype(dtype))).astype(_wide(value, dtype))
    return np.asarray(np.where(np.isfinite(spacing), spacing, spacing.dtype.type(limits.max) * float(limits.epsneg)))


def _wide(value: AnyArray, dtype: str) -> Any:
    """A dtype in which differences from the exact value are exact enough: float64 for dtypes of half its size."""
    return np.float64 if dtypes.named(dtype).size < 8 else np.result_type(value.dtype, np.float64).type


def beyond(got: AnyArray, true: AnyArray, within: AnyArray) -> Mask:
    """Which elements exceed the error bound `within`; integers must be equal.

    NaN equals NaN only; an infinity equals itself and whatever overflows the dtype.
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
            fine |= np.isinf(got) & (np.signbit(got) == np.signbit(right)) & (np.abs(right) + within > largest)
    return np.asarray(~fine)
