"""sin for float32 and float64, accurate for every finite argument: `quarter_turns`, then `sincos_kernel`.

The quarters of the circle are the sine of the reduced argument, its cosine, and both negated. Both polynomials are
computed and one is selected: together they take as long as one for half a circle, which would lose the exact ends. The
sine of the size takes the sign of x, so that zeros keep theirs.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.sincos_kernel import cosine_float32, cosine_float64, sine_float32, sine_float64
from jitkernels.microkernels.maths.trig_reduction import quarter_turns_float32, quarter_turns_float64

SIGN_32 = np.int32(-(2**31))
SIGN_64 = np.int64(-(2**63))


@inlined("contract")
def sin_float32(x: np.float32) -> np.float32:
    """sin(x) for every float32; NaN for infinities and NaN; at most 0.92 ULP (all inputs measured)."""
    k, r, rest = quarter_turns_float32(abs(x))
    result = sine_float32(r, rest) if k & 1 == 0 else cosine_float32(r, rest)
    sign = (k << 30 ^ x.view(np.int32)) & SIGN_32
    return (result.view(np.int32) ^ sign).view(np.float32)


@inlined("contract")
def sin_float64(x: np.float64) -> np.float64:
    """sin(x) for every float64; NaN for infinities and NaN; at most 0.80 ULP (2e7 inputs measured)."""
    k, r, rest = quarter_turns_float64(abs(x))
    result = sine_float64(r, rest) if k & 1 == 0 else cosine_float64(r, rest)
    sign = (k << 62 ^ x.view(np.int64)) & SIGN_64
    return (result.view(np.int64) ^ sign).view(np.float64)
