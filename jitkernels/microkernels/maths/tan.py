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

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined
from jitkernels.microkernels.maths.exp import ONE
from jitkernels.microkernels.maths.formats import FloatFormat, coefficients, for_both
from jitkernels.microkernels.maths.strict_arithmetic import times
from jitkernels.microkernels.maths.trig_reduction import even_quarter_turns_float32, quarter_turns_float64

TWO = np.float32(2), np.float64(2)
SLOPE = np.float32(1.5), np.float64(1.5)
T_32 = coefficients(  # of r**3, r**5, ...; relative error of the whole tangent: 2**-29.6
    np.float32, 0.3333335, 0.13332675, 0.054058913, 0.021286208, 0.010827442, 9.825518e-05, 0.004372686
)
T_64 = coefficients(  # 2**-56.2
    np.float64, 0.3333333333333278, 0.13333333333414132, 0.053968253926883335, 0.021869489604128007,
    0.00886321922998835, 0.0035922885061032994, 0.0014547613446165822, 0.0005950508870595163, 0.00022241985142125865,
    0.0001364442833881933, -2.6272880039766366e-05, 8.934907373209104e-05, -4.4821163407967675e-05,
    2.0850001272181032e-05,
)  # fmt: skip


@inlined("contract")
def terms_float32(z: np.float32) -> np.float32:
    """(tan(r) - r) / r**3 for z = r**2."""
    square = z * z
    p = (T_32[6] * square + (T_32[5] * z + T_32[4])) * square + (T_32[3] * z + T_32[2])
    value: np.float32 = p * square + (T_32[1] * z + T_32[0])
    return value


@inlined("contract")
def terms_float64(z: np.float64) -> np.float64:
    """(tan(r) - r) / r**3 for z = r**2."""
    square = z * z
    p = (T_64[13] * z + T_64[12]) * square + (T_64[11] * z + T_64[10])
    p = (p * square + (T_64[9] * z + T_64[8])) * square + (T_64[7] * z + T_64[6])
    p = (p * square + (T_64[5] * z + T_64[4])) * square + (T_64[3] * z + T_64[2])
    value: np.float64 = p * square + (T_64[1] * z + T_64[0])
    return value


def _tan(form: FloatFormat, quarter_turns: Any, terms: Any, slope: Any, one: Any, two: Any) -> Any:
    number, integer, sign_mask = form.number, form.integer, form.sign
    to_sign = 8 * number().itemsize - 1

    @inlined("contract")
    def tan(x: Any) -> Any:
        """Compute tan of x, NaN for infinities.

        At most 1.76 ULP of float32 (all inputs measured), 1.80 ULP of float64 (2e7).
        """
        k, r, rest = quarter_turns(abs(x))
        z = r * r
        p = terms(z)
        tangent = r + (p * (z * r) + times(slope * z + one, rest))
        twice, is_even = tangent + tangent, k & 1 == 0
        quotient = (twice if is_even else two) / (two if is_even else twice)
        sign = (k << to_sign ^ x.view(integer)) & sign_mask
        return (quotient.view(integer) ^ sign).view(number)

    return tan


tan_float32, tan_float64 = for_both(
    _tan, (even_quarter_turns_float32, quarter_turns_float64), (terms_float32, terms_float64), SLOPE, ONE, TWO
)
