"""What rows promise of bfloat16 beside the rounding of float32: products may lose what is subnormal."""

import numpy as np

from jitkernels import bfloat16
from jitkernels.signature import AnyArray

TINY = bfloat16.limits(bfloat16.NAME).tiny
EPS = float(np.finfo(np.float32).eps)


def flushed(products: AnyArray, x: AnyArray, y: AnyArray, dtype: str) -> AnyArray:
    """What products of x and y may lose, in units of float32's precision: all of them, where a factor is subnormal.

    Beside an infinity such a factor may be a zero, and nothing is promised.
    """
    if dtype != bfloat16.NAME:
        return np.zeros(products.shape)
    lost = np.where(is_subnormal(x) | is_subnormal(y), products, TINY)
    return np.where(np.isinf(lost), np.nan, lost) / EPS


def is_subnormal(x: AnyArray) -> AnyArray:
    """Where numbers are nearer to zero than any normal one of bfloat16, and not it."""
    return np.asarray((np.abs(x) < TINY) & (x != 0))


def flushed_sums(a: AnyArray, b: AnyArray, dtype: str) -> AnyArray:
    """The same of a matrix product of absolute numbers."""
    if dtype != bfloat16.NAME:
        return np.zeros(1)
    small_a, small_b = is_subnormal(a), is_subnormal(b)
    finite_a, finite_b = (np.where(np.isfinite(one), one, 0) for one in (a, b))
    lost = np.where(small_a, a, 0) @ finite_b + finite_a @ np.where(small_b, b, 0) + a.shape[-1] * TINY
    unknown = (small_a * 1.0) @ np.isinf(b) + np.isinf(a) @ (small_b * 1.0) > 0
    return np.asarray(np.where(unknown, np.nan, lost) / EPS)
