"""cbrt for float32 and float64, without a division.

A third of the bits of x, taken from a constant, are those of a number z that is x**(-1/3) to within 3.5 % (as Kahan
found for cbrt; fdlibm, s_cbrt.c). With e = 1 - x * z**3 a polynomial of (1 - e)**(-1/3) makes z good to half of the
digits, and one step of Newton's method y = x * z**2 to all of them. The integer third is computed in floating point.

Zero, subnormal, huge, infinite numbers and NaN have a path of their own behind one test of all lanes: scaled by a cube,
or unchanged.

The polynomials minimise the largest error times e; coefficients were rounded to the type one by one, lowest power
first, and the rest fitted again.
"""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import cold, inlined
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, coefficients, for_both
from jitkernels.microkernels.maths.log import COUNT_BITS_64, INFINITY, ONE_32, ONE_64, smallest_bits

THIRD_32 = np.float32(1 / 3)
START_32 = np.float32(1419900529)
C_32 = coefficients(np.float32, 1, 0.33332774, 0.22347598, 0.17467491)  # relative error of z: 2**-18.5

COUNT_64 = np.float64(2.0**52)
THIRD_64 = np.float64(1 / 3)
START_64 = np.float64(1430186361 + 1.5 * 2.0**52)  # whose sum has an integer in its low bits
C_64 = coefficients(  # relative error of z: 2**-32.3
    np.float64, 1, 0.33333334556122174, 0.22222225455706487, 0.1728299348535198, 0.1440178895814341,
    0.12667328229717217, 0.11306804589360812,
)  # fmt: skip


@inlined("contract")
def root_float32(x: np.float32) -> np.float32:
    """cbrt(x) for normal positive numbers below 2**126."""
    z = np.int32(START_32 - np.float32(x.view(np.int32)) * THIRD_32).view(np.float32)
    e = ONE_32 - (x * z) * (z * z)
    z = z + z * e * ((C_32[3] * e + C_32[2]) * e + C_32[1])
    square = z * z
    y = x * square
    return y + (x - y * y * y) * (square * THIRD_32)


@inlined("contract")
def root_float64(x: np.float64) -> np.float64:
    """cbrt(x) for normal positive numbers below 2**1022."""
    upper = (x.view(np.int64) >> 32 | COUNT_BITS_64).view(np.float64) - COUNT_64
    z = ((START_64 - upper * THIRD_64).view(np.int64) << 32).view(np.float64)
    e = ONE_64 - (x * z) * (z * z)
    square = e * e
    p = ((C_64[6] * e + C_64[5]) * square + (C_64[4] * e + C_64[3])) * square + (C_64[2] * e + C_64[1])
    z = z + z * e * p
    square = z * z
    y = x * square
    return y + (x - y * y * y) * (square * THIRD_64)


def _cbrt(form: FloatFormat, root: Any, one: Any, infinity: Any, steps: int) -> Any:
    number, integer, unsigned, sign_mask = form.number, form.integer, form.unsigned, form.sign
    smallest = smallest_bits(form)
    cubed_bits = unsigned(2 * (form.bias - 1) << form.fraction_bits)  # from there on y**3 might be infinite
    up, up_root, down, down_root = (number(2.0**power) for power in (3 * steps, steps, -3 * steps, -steps))

    @cold("contract")
    def scaled_root(size: Any) -> Any:
        """The root of a subnormal or very large number; zero, infinity and NaN are unchanged."""
        is_small = size < one
        scaled = root(size * (up if is_small else down))
        scaled = scaled * (down_root if is_small else up_root)
        return scaled if size > 0 and size < infinity else size

    @inlined("contract")
    def cbrt(x: Any) -> Any:
        """Compute cbrt of x; at most 0.83 ULP of float32 (1.1e9 inputs measured), 0.79 ULP of float64 (2.8e7)."""
        size = abs(x)
        y = root(size)
        if (size.view(integer) - smallest).view(unsigned) >= cubed_bits:
            y = scaled_root(size)
        return (y.view(integer) | x.view(integer) & sign_mask).view(number)

    return cbrt


cbrt_float32, cbrt_float64 = for_both(_cbrt, (root_float32, root_float64), ONE, INFINITY, (16, 32))
