"""NumPy reference of MATMUL_EPILOGUE."""

import math

import numpy as np

from jitkernels.attrs.matmul_epilogue import MatMulEpilogueAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.compiler.ir import special_functions


@implements(MatMulEpilogueAttr)
def matmul_epilogue(attr: MatMulEpilogueAttr, a: AnyArray, b: AnyArray, *rest: AnyArray) -> None:
    *bias, c = rest
    with np.errstate(all="ignore"):
        z = (a.T if attr.trans_a else a) @ (b.T if attr.trans_b else b)
        if bias:
            z = z + bias[0]
        c[...] = activated(attr.activation, z)


def activated(activation: str, z: AnyArray) -> AnyArray:
    """Apply the activation to the sums."""
    if activation == "relu":
        return np.maximum(z, 0)
    if activation == "gelu":
        gelu: AnyArray = z * special_functions.erfc(-z * math.sqrt(0.5)) / 2
        return gelu
    if activation == "tanh":
        return np.tanh(z)
    if activation == "identity":
        return z
    sigmoid: AnyArray = special_functions.sigmoid(z)
    return sigmoid if activation == "sigmoid" else z * sigmoid
