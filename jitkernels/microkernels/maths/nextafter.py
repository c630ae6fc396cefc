"""nextafter and spacing (ULP): floats are ordered as the integers of their bits."""

import numpy as np

from jitkernels.codegen.source_protocol import inlined

SIGN_32 = np.int32(-(2**31))
SIGN_64 = np.int64(-(2**63))
LEAST_32 = np.float32(2.0**-149)
LEAST_64 = np.float64(2.0**-1074)


@inlined()
def nextafter_float32(a: np.float32, b: np.float32) -> np.float32:
    """The next number from a to b; b where they are equal."""
    bits = a.view(np.int32)
    moved = (bits + 1 if (a < b) == (bits >= 0) else bits - 1).view(np.float32)
    moved = np.copysign(LEAST_32, b) if a == 0 else moved
    return b if a == b else a + b if (a != a) | (b != b) else moved


@inlined()
def nextafter_float64(a: np.float64, b: np.float64) -> np.float64:
    """The next number from a to b; b where they are equal."""
    bits = a.view(np.int64)
    moved = (bits + 1 if (a < b) == (bits >= 0) else bits - 1).view(np.float64)
    moved = np.copysign(LEAST_64, b) if a == 0 else moved
    return b if a == b else a + b if (a != a) | (b != b) else moved


@inlined()
def spacing_float32(a: np.float32) -> np.float32:
    """The distance to the next number away from zero, with the sign of a; NaN for infinities."""
    return (a.view(np.int32) + 1).view(np.float32) - a


@inlined()
def spacing_float64(a: np.float64) -> np.float64:
    """The distance to the next number away from zero, with the sign of a; NaN for infinities."""
    return (a.view(np.int64) + 1).view(np.float64) - a
