"""softplus(x) = log(1 + exp(x)) for float32 and float64, as max(x, 0) + log1p(exp(-|x|)), which cannot overflow.

Errors of exp would add to those of log1p, so exp returns two numbers, the second of which is its rounding error.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import (
    C2_32,
    C2_64,
    C3_32,
    C3_64,
    C4_32,
    C4_64,
    C5_32,
    C5_64,
    C6_32,
    C6_64,
    C7_64,
    C8_64,
    C9_64,
    C10_64,
    C11_64,
    LN2_HIGH_32,
    LN2_HIGH_64,
    LN2_LOW_32,
    LN2_LOW_64,
    LOG2E_32,
    LOG2E_64,
    LOWEST_32,
    LOWEST_64,
    MAGIC_32,
    MAGIC_64,
    halves_float32,
    halves_float64,
    ten_terms_float64,
)
from jitkernels.microkernels.maths.log import ZERO_32, ZERO_64
from jitkernels.microkernels.maths.log1p import plus_log1p_float32, plus_log1p_float64


@inlined("contract")
def decay_float32(x: np.float32) -> tuple[np.float32, np.float32]:
    """exp(-x) for x >= 0 and for NaN, as the sum of two."""
    y = max(-x, LOWEST_32)
    shifted = y * LOG2E_32 + MAGIC_32
    k = shifted - MAGIC_32
    r = (y - k * LN2_HIGH_32) - k * LN2_LOW_32
    more = ((((C6_32 * r + C5_32) * r + C4_32) * r + C3_32) * r + C2_32) * (r * r) + r
    return halves_float32(more, shifted)


@inlined("contract")
def decay_float64(x: np.float64) -> tuple[np.float64, np.float64]:
    """exp(-x) for x >= 0 and for NaN, as the sum of two."""
    y = max(-x, LOWEST_64)
    shifted = y * LOG2E_64 + MAGIC_64
    k = shifted - MAGIC_64
    r = (y - k * LN2_HIGH_64) - k * LN2_LOW_64
    square = r * r
    p = ten_terms_float64(r, square, C2_64, C3_64, C4_64, C5_64, C6_64, C7_64, C8_64, C9_64, C10_64, C11_64)
    more = p * square + r
    return halves_float64(more, shifted)


@inlined("contract")
def softplus_float32(x: np.float32) -> np.float32:
    """softplus(x) for every float32; at most 1.65 ULP (1.1e9 inputs measured)."""
    e, low = decay_float32(abs(x))
    return plus_log1p_float32(max(x, ZERO_32), e, low)


@inlined("contract")
def softplus_float64(x: np.float64) -> np.float64:
    """softplus(x) for every float64; at most 1.50 ULP (2.8e7 inputs measured)."""
    e, low = decay_float64(abs(x))
    return plus_log1p_float64(max(x, ZERO_64), e, low)
