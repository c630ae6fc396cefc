"""logaddexp2(x, y) = log2(2**x + 2**y) for float32 and float64, as max(x, y) + log2(1 + 2**-|x - y|).

The error is in units of the larger one of the two terms, and kept small as that of `logaddexp`.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp2 import DECAY2
from jitkernels.microkernels.maths.formats import FloatFormat, for_both
from jitkernels.microkernels.maths.log import ZERO
from jitkernels.microkernels.maths.log1p import RAISED_PARTS
from jitkernels.microkernels.maths.log2 import C_32, LOG2E_HIGH_64, halves_float64, rest_float32
from jitkernels.microkernels.maths.logaddexp import FAR, difference
from jitkernels.microkernels.maths.strict_arithmetic import times

LN2 = np.float32(0.6931472), np.float64(0.6931471805599453)


@inlined("contract")
def log2_float32(f: np.float32, low: np.float32, scale: np.float32) -> np.float32:
    """log2(1 + f + low * scale)."""
    result: np.float32 = f * C_32[1] + (rest_float32(f) + times(low * scale, C_32[1]))
    return result


@inlined("contract")
def log2_float64(f: np.float64, low: np.float64, scale: np.float64) -> np.float64:
    """log2(1 + f + low * scale)."""
    high, rest = halves_float64(f)
    return high * LOG2E_HIGH_64 + (rest + times(low * scale, LOG2E_HIGH_64))


def _logaddexp2(form: FloatFormat, power_of_difference: Any, raised_parts: Any, log2: Any) -> Any:
    @inlined("contract")
    def logaddexp2(x: Any, y: Any) -> Any:
        """Compute logaddexp2 of x, y; at most 1.9 ULP of float32 (3e6 pairs measured), 1.4 ULP of float64 (3e6)."""
        e, low = power_of_difference(x, y)
        k, f, scale = raised_parts(e)
        return max(x, y) + (k + log2(f, low, scale))

    return logaddexp2


logaddexp2_float32, logaddexp2_float64 = for_both(
    _logaddexp2,
    for_both(difference, DECAY2, LN2, FAR, ZERO, name="power_of_difference_of_2"),
    RAISED_PARTS,
    (log2_float32, log2_float64),
)
