"""erf for float32 and float64, and the polynomial that erfc shares with it in float64.

In float64, up to 1 it is x plus an odd polynomial, which is small beside x and so adds hardly more than the last
rounding. From there on it is 1 - exp(p(|x|)), where p, for the logarithm of erfc, need not be as accurate as the
result: what is subtracted is at most 0.16. |x| is limited to where the result rounds to one, NaN passes. Both are
computed, and one is selected.

In float32 each of 16 intervals has a polynomial of its own, whose coefficients one instruction takes out of a register:
of erf(x), or of erf(x) / x - 1 below 1/2, which keeps small results exact. Fitted to NumPy's float64 by least squares,
weighted again and again until the largest errors are equal.

Those of float64 come from a Remez exchange in 50-digit arithmetic, the errors weighted by what they make of the result;
coefficients were rounded to the type one by one, lowest power first, and the rest fitted again.
"""

import numpy as np

from jitkernels.codegen.source_protocol import Table, inlined
from jitkernels.microkernels.maths.exp import limited_exp_float64
from jitkernels.microkernels.maths.formats import coefficients

HALF_32 = np.float32(0.5)
STEP_32 = np.float32(0.125)
HIGHEST_32 = np.float32(3.99)
MAGIC_32 = np.float32(1.5 * 2.0**21)  # whose sum has multiples of 1/4, and how many they are in its low bits
ROWS_32 = Table(
    tuple(tuple(np.float32(number) for number in row) for row in (
        (0.12252963, -0.09315495, -0.36564085, 0.055378307, 0.10594264, -0.019500282),
        (0.07764509, -0.25944608, -0.28849602, 0.14298579, 0.06273883, -0.046240244),
        (0.6232409, 0.76349956, -0.47718477, -0.055682227, 0.17566839, -0.0265825),
        (0.7840751, 0.52474505, -0.45916077, 0.092916474, 0.11279824, -0.06642301),
        (0.8883882, 0.31827396, -0.35805258, 0.1624523, 0.027857017, -0.061205566),
        (0.94817007, 0.17035978, -0.23424436, 0.15793815, -0.030175738, -0.03066848),
        (0.97844374, 0.08047226, -0.13077332, 0.11484064, -0.049117174, -0.0022366617),
        (0.99199003, 0.033545826, -0.06288492, 0.06744254, -0.04305677, 0.011300838),
        (0.997346, 0.01234082, -0.026230738, 0.03303763, -0.025974864, 0.012453462),
        (0.99921703, 0.0040064775, -0.009500714, 0.013730618, -0.014117474, 0.008354665),
        (0.9997946, 0.0011478751, -0.0030018897, 0.004890358, -0.006169027, 0.004232862),
        (0.99995214, 0.0002902283, -0.00083039637, 0.0015024724, -0.0021553838, 0.0017255604),
        (0.9999901, 6.4758686e-05, -0.00020350431, 0.00039998576, -0.00049239275, 0.00058329926),
        (0.9999982, 1.2751741e-05, -5.6682427e-05, 9.2570124e-05, 0.00072608184, 0.00016619555),
        (0.9999997, 2.2159202e-06, -6.576487e-06, 1.8669885e-05, -0.00012466779, 4.0334613e-05),
        (1.0, 3.3982238e-07, -2.2717339e-05, 3.287491e-06, 0.0013588152, 8.3992e-06),
    ))
)  # fmt: skip
"""Of 16 intervals from 0 on, 1/4 long, polynomials around their middles: relative error 2**-24.4."""

HIGHEST_64 = np.float64(5.95)
B_64 = coefficients(  # of x, x**3, ...; relative error of the whole, up to 1: 2**-56.0
    np.float64, 0.12837916709551256, -0.37612638903183343, 0.11283791670936948, -0.026866170641958155,
    0.00522397759672295, -0.0008548325484134174, 0.00012055280463177756, -1.4924464851252609e-05, 1.644413902315704e-06,
    -1.618388891078883e-07, 1.3616198140187474e-08, -7.606769973170311e-10,
)  # fmt: skip
L_64 = coefficients(  # error of the whole, from 1 on: 2**-57.0
    np.float64, -5.02817588704961e-07, -1.128374089793858, -0.6366436266350602, -0.1027034436041177,
    0.01899018675619145, 0.0004106167783436699, -0.00191593156793546, 0.0007706336584024188, -0.00013504434420043716,
    -2.0269641738653742e-05, 2.282366339198537e-05, -8.667518111368116e-06, 2.1357607346585406e-06,
    -3.733176384410693e-07, 4.6424788251967234e-08, -3.934428483630758e-09, 2.0450553276349247e-10,
    -4.928859514580743e-12,
)  # fmt: skip


@inlined("contract")
def beyond_float64(x: np.float64) -> np.float64:
    """erf(x) - x for -1 <= x <= 1."""
    z = x * x
    square = z * z
    p = (B_64[11] * z + B_64[10]) * square + (B_64[9] * z + B_64[8])
    p = (p * square + (B_64[7] * z + B_64[6])) * square + (B_64[5] * z + B_64[4])
    p = (p * square + (B_64[3] * z + B_64[2])) * square + (B_64[1] * z + B_64[0])
    result: np.float64 = p * x
    return result


@inlined("contract")
def log_of_rest_float64(x: np.float64) -> np.float64:
    """log(1 - erf(x)) for 1 <= x <= 5.95."""
    square = x * x
    p = (L_64[17] * x + L_64[16]) * square + (L_64[15] * x + L_64[14])
    p = (p * square + (L_64[13] * x + L_64[12])) * square + (L_64[11] * x + L_64[10])
    p = (p * square + (L_64[9] * x + L_64[8])) * square + (L_64[7] * x + L_64[6])
    p = (p * square + (L_64[5] * x + L_64[4])) * square + (L_64[3] * x + L_64[2])
    result: np.float64 = p * square + (L_64[1] * x + L_64[0])
    return result


@inlined("contract")
def erf_float32(x: np.float32) -> np.float32:
    """erf(x) for every float32; at most 1.00 ULP (all inputs measured)."""
    size = abs(x)
    shifted_size = min(size, HIGHEST_32) - STEP_32
    shifted = shifted_size + MAGIC_32
    t = shifted_size - (shifted - MAGIC_32)
    c0, c1, c2, c3, c4, c5 = ROWS_32[np.int64(shifted.view(np.int32))]
    p = (((c5 * t + c4) * t + c3) * t + c2) * t + c1
    value = p * t + c0
    result: np.float32 = np.copysign(size * value + size if size < HALF_32 else value, x)
    return result


@inlined("contract")
def erf_float64(x: np.float64) -> np.float64:
    """erf(x) for every float64, infinities and NaN included; at most 1.25 ULP (2e7 inputs measured)."""
    size = abs(x)
    large = 1 - limited_exp_float64(log_of_rest_float64(min(size, HIGHEST_64)))
    magnitude = x + beyond_float64(x) if size < 1 else large
    result: np.float64 = np.copysign(magnitude, x)
    return result
