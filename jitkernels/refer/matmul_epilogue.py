"""NumPy reference of MATMUL_EPILOGUE."""

import math

import numpy as np

from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray

erfc = np.frompyfunc(math.erfc, 1, 1)
"""NumPy has none."""


@implements(MatMulEpilogueAttr)
def matmul_epilogue(attr: MatMulEpilogueAttr, a: AnyArray, b: AnyArray, *rest: AnyArray) -> None:
    *bias, c = rest
    with np.errstate(all="ignore"):
        z = (a.T if attr.trans_a else a) @ (b.T if attr.trans_b else b)
        if bias:
            z = z + bias[0]
        c[...] = activated(attr.activation, z)


def activated(activation: str, z: AnyArray) -> AnyArray:
    """What is made of the sums."""
    if activation == "relu":
        return np.maximum(z, 0)
    if activation == "gelu":
        return np.asarray(z * np.asarray(erfc(-z * math.sqrt(0.5))).astype(z.dtype) / 2)
    if activation == "tanh":
        return np.asarray(np.tanh(z))
    if activation == "identity":
        return z
    small = np.exp(-np.abs(z))
    sigmoid = np.where(z < 0, small, np.ones_like(z)) / (1 + small)
    return np.asarray(sigmoid if activation == "sigmoid" else z * sigmoid)
