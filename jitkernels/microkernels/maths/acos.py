"""acos for float32 and float64, by the polynomial of `asin`.

With s and z as there, but s = x up to 1/2, it is pi/2 - asin(s) there, 2 asin(s) towards 1, where it keeps its relative
accuracy, and 2 (pi/2 - asin(s)) towards -1.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.asin import (
    HALF_32,
    HALF_64,
    HALF_PI_32,
    HALF_PI_64,
    HALF_PI_REST_32,
    HALF_PI_REST_64,
    ONE_32,
    ONE_64,
    beyond_float32,
    beyond_float64,
)


@inlined("contract")
def acos_float32(x: np.float32) -> np.float32:
    """acos(x) for every float32; NaN for NaN and where |x| > 1; at most 1.20 ULP (all inputs measured)."""
    size = abs(x)
    is_outer = size > HALF_32
    z = (ONE_32 - size) * HALF_32 if is_outer else x * x
    s = np.sqrt(z) if is_outer else x
    beyond = beyond_float32(s, z)
    half = s + beyond if x > HALF_32 else HALF_PI_32 - (s + (beyond - HALF_PI_REST_32))
    return half + half if is_outer else half


@inlined("contract")
def acos_float64(x: np.float64) -> np.float64:
    """acos(x) for every float64; NaN for NaN and where |x| > 1; at most 1.25 ULP (2e7 inputs measured)."""
    size = abs(x)
    is_outer = size > HALF_64
    z = (ONE_64 - size) * HALF_64 if is_outer else x * x
    s = np.sqrt(z) if is_outer else x
    beyond = beyond_float64(s, z)
    half = s + beyond if x > HALF_64 else HALF_PI_64 - (s + (beyond - HALF_PI_REST_64))
    return half + half if is_outer else half
