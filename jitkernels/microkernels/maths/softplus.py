"""softplus(x) = log(1 + exp(x)) for float32 and float64, as max(x, 0) + log1p(exp(-|x|)), which cannot overflow.

Errors of exp would add to those of log1p, so exp returns two numbers, the second of which is its rounding error.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import C_32, HALVES, LN2_HIGH, LN2_LOW, LOG2E, LOWEST, MAGIC, exp_terms_float64
from jitkernels.microkernels.maths.formats import FloatFormat, for_both
from jitkernels.microkernels.maths.log import ZERO
from jitkernels.microkernels.maths.log1p import PLUS_LOG1P


@inlined("contract")
def expm1_float32(r: np.float32) -> np.float32:
    """exp(r) - 1."""
    value: np.float32 = ((((C_32[6] * r + C_32[5]) * r + C_32[4]) * r + C_32[3]) * r + C_32[2]) * (r * r) + r
    return value


@inlined("contract")
def expm1_float64(r: np.float64) -> np.float64:
    """exp(r) - 1."""
    square = r * r
    value: np.float64 = exp_terms_float64(r, square) * square + r
    return value


def _decay(
    form: FloatFormat, expm1: Any, lowest: Any, log2e: Any, magic: Any, ln2: tuple[Any, Any], halves: Any
) -> Any:
    high, low = ln2

    @inlined("contract")
    def decay(x: Any) -> tuple[Any, Any]:
        """exp(-x) for x >= 0 and for NaN, as the sum of two."""
        y = max(-x, lowest)
        shifted = y * log2e + magic
        k = shifted - magic
        more, less = halves(expm1((y - k * high) - k * low), shifted)
        return more, less

    return decay


def _softplus(form: FloatFormat, decay: Any, plus_log1p: Any, zero: Any) -> Any:
    @inlined("contract")
    def softplus(x: Any) -> Any:
        """Compute softplus of x; at most 1.65 ULP of float32 (1.1e9 inputs measured), 1.50 ULP of float64 (2.8e7)."""
        e, low = decay(abs(x))
        return plus_log1p(max(x, zero), e, low)

    return softplus


LN2 = tuple(zip(LN2_HIGH, LN2_LOW, strict=True))
DECAY = for_both(_decay, (expm1_float32, expm1_float64), LOWEST, LOG2E, MAGIC, LN2, HALVES)
softplus_float32, softplus_float64 = for_both(_softplus, DECAY, PLUS_LOG1P, ZERO)
