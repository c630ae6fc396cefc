"""Roots of unity in kernels: sines and cosines of fractions of a turn, correct to about the last bit.

The angle is reduced to at most an eighth of a turn in integers, so that nothing is lost, and multiplied with pi in
twice the precision of float64.
"""

import math
from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import noinline
from jitkernels.microkernels.maths.sincos_kernel import cosine_float64, sine_float64
from jitkernels.microkernels.maths.strict_arithmetic import times_plus_float64

QUARTER = np.float64(math.pi / 2)
QUARTER_REST = np.float64(6.123233995736766e-17)
"""pi / 2 less QUARTER, which is sin(pi) of that float64, halved."""


@noinline()
def root_of_unity(k: int, n: int) -> Any:
    """Cosine and sine of k / n of a turn, for 0 <= k and 8 * k, 4 * n below 2**63."""
    quarters = (8 * k + n) // (2 * n)
    rest = np.float64(4 * k - quarters * n)
    product, divisor = rest * QUARTER, np.float64(n)
    low = times_plus_float64(rest, QUARTER, -product) + rest * QUARTER_REST
    angle = product / divisor
    more = (times_plus_float64(-angle, divisor, product) + low) / divisor
    cosine, sine = cosine_float64(angle, more), sine_float64(angle, more)
    is_odd = quarters & 1 == 1
    re = sine if is_odd else cosine
    im = cosine if is_odd else sine
    re = -re if (quarters + 1) & 2 == 2 else re
    im = -im if quarters & 2 == 2 else im
    return re, im
