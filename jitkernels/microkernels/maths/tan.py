"""tan for float32 and float64, accurate for every finite argument and next to its poles.

`quarter_turns`, and an odd polynomial for the tangent of the reduced argument: with 14 terms, where a sine and a cosine
have 12, but rounded once instead of twice, and quotients of the two are off by 2.3 ULP. In every second quarter the
result is -1 / tan(r); everywhere it is one quotient, of 2 * tan(r) and 2 in one order or the other, and so never of 0.
With a constant 1, LLVM would divide by tan(r) in all lanes, and select the lanes without a division from the operand.

Beyond pi/4 a tangent is more than 1, and its error counts twice in 1 / tan(r): r never gets there.

The correction of r is multiplied by the derivative, 1 + tan(r)**2, which 1 + 1.5 * r**2 approximates well enough.

The polynomials come from a Remez exchange in 50-digit arithmetic for (tan(r) - r) / r**3, the error weighted relative
to tan(r); coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.sin import SIGN_32, SIGN_64
from jitkernels.microkernels.maths.strict_arithmetic import times
from jitkernels.microkernels.maths.trig_reduction import even_quarter_turns_float32, quarter_turns_float64

ONE_32, TWO_32 = np.float32(1), np.float32(2)
SLOPE_32 = np.float32(1.5)
T3_32 = np.float32(0.3333335)  # relative error of the whole tangent: 2**-29.6
T5_32 = np.float32(0.13332675)
T7_32 = np.float32(0.054058913)
T9_32 = np.float32(0.021286208)
T11_32 = np.float32(0.010827442)
T13_32 = np.float32(9.825518e-05)
T15_32 = np.float32(0.004372686)

ONE_64, TWO_64 = np.float64(1), np.float64(2)
SLOPE_64 = np.float64(1.5)
T3_64 = np.float64(0.3333333333333278)  # relative error of the whole tangent: 2**-56.2
T5_64 = np.float64(0.13333333333414132)
T7_64 = np.float64(0.053968253926883335)
T9_64 = np.float64(0.021869489604128007)
T11_64 = np.float64(0.00886321922998835)
T13_64 = np.float64(0.0035922885061032994)
T15_64 = np.float64(0.0014547613446165822)
T17_64 = np.float64(0.0005950508870595163)
T19_64 = np.float64(0.00022241985142125865)
T21_64 = np.float64(0.0001364442833881933)
T23_64 = np.float64(-2.6272880039766366e-05)
T25_64 = np.float64(8.934907373209104e-05)
T27_64 = np.float64(-4.4821163407967675e-05)
T29_64 = np.float64(2.0850001272181032e-05)


@inlined("contract")
def tan_float32(x: np.float32) -> np.float32:
    """tan(x) for every float32; NaN for infinities and NaN; at most 1.76 ULP (all inputs measured)."""
    k, r, rest = even_quarter_turns_float32(abs(x))
    z = r * r
    square = z * z
    p = (T15_32 * square + (T13_32 * z + T11_32)) * square + (T9_32 * z + T7_32)
    p = p * square + (T5_32 * z + T3_32)
    tangent = r + (p * (z * r) + times(SLOPE_32 * z + ONE_32, rest))
    twice, is_even = tangent + tangent, k & 1 == 0
    quotient = (twice if is_even else TWO_32) / (TWO_32 if is_even else twice)
    sign = (k << 31 ^ x.view(np.int32)) & SIGN_32
    return (quotient.view(np.int32) ^ sign).view(np.float32)


@inlined("contract")
def tan_float64(x: np.float64) -> np.float64:
    """tan(x) for every float64; NaN for infinities and NaN; at most 1.80 ULP (2e7 inputs measured)."""
    k, r, rest = quarter_turns_float64(abs(x))
    z = r * r
    square = z * z
    p = (T29_64 * z + T27_64) * square + (T25_64 * z + T23_64)
    p = (p * square + (T21_64 * z + T19_64)) * square + (T17_64 * z + T15_64)
    p = (p * square + (T13_64 * z + T11_64)) * square + (T9_64 * z + T7_64)
    p = p * square + (T5_64 * z + T3_64)
    tangent = r + (p * (z * r) + times(SLOPE_64 * z + ONE_64, rest))
    twice, is_even = tangent + tangent, k & 1 == 0
    quotient = (twice if is_even else TWO_64) / (TWO_64 if is_even else twice)
    sign = (k << 63 ^ x.view(np.int64)) & SIGN_64
    return (quotient.view(np.int64) ^ sign).view(np.float64)
