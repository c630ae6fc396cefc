"""The error bound of bfloat16 beyond float32 rounding: products with a subnormal factor may be flushed to zero."""

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.core import bfloat16

TINY = bfloat16.limits(bfloat16.BFLOAT16_NAME).tiny
EPS = float(np.finfo(np.float32).eps)


def flushed(products: AnyArray, x: AnyArray, y: AnyArray, dtype: str) -> AnyArray:
    """The error of products of x and y, in units of float32's precision, if subnormal factors are flushed to zero.

    Beside an infinity such a factor may become zero, and there is no bound.
    """
    if dtype != bfloat16.BFLOAT16_NAME:
        return np.zeros(products.shape)
    lost = np.where(is_subnormal(x) | is_subnormal(y), products, TINY)
    return np.where(np.isinf(lost), np.nan, lost) / EPS


def is_subnormal(x: AnyArray) -> AnyArray:
    """Where numbers are subnormal in bfloat16."""
    return np.asarray((np.abs(x) < TINY) & (x != 0))


def flushed_sums(a: AnyArray, b: AnyArray, dtype: str) -> AnyArray:
    """As `flushed`, for a matrix product of absolute values."""
    if dtype != bfloat16.BFLOAT16_NAME:
        return np.zeros(1)
    small_a, small_b = is_subnormal(a), is_subnormal(b)
    finite_a, finite_b = (np.where(np.isfinite(factor), factor, 0) for factor in (a, b))
    lost = np.where(small_a, a, 0) @ finite_b + finite_a @ np.where(small_b, b, 0) + a.shape[-1] * TINY
    unknown = (small_a * 1.0) @ np.isinf(b) + np.isinf(a) @ (small_b * 1.0) > 0
    return np.asarray(np.where(unknown, np.nan, lost) / EPS)
