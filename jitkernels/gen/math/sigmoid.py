import numpy as np

from jitkernels.gen.math.exp import LOWEST_32, LOWEST_64, ONE_32, ONE_64, reduced_exp_float32, reduced_exp_float64
from jitkernels.native.source import inlined

ZERO_32 = np.float32(0)
ZERO_64 = np.float64(0)


@inlined("contract")
def sigmoid_float32(x: np.float32) -> np.float32:
    e = reduced_exp_float32(max(-abs(x), LOWEST_32))
    return (e if x < ZERO_32 else ONE_32) / (ONE_32 + e)


@inlined("contract")
def sigmoid_float64(x: np.float64) -> np.float64:
    e = reduced_exp_float64(max(-abs(x), LOWEST_64))
    return (e if x < ZERO_64 else ONE_64) / (ONE_64 + e)
