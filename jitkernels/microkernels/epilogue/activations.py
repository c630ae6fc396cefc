"""Activations of the GEMM epilogue, as scalar functions."""

from typing import Any

from jitkernels.codegen.source_protocol import inlined
from jitkernels.core import dtypes
from jitkernels.microkernels.maths.erfc import erfc_float32, erfc_float64
from jitkernels.microkernels.maths.sigmoid import sigmoid_float32, sigmoid_float64
from jitkernels.microkernels.maths.tanh import tanh_float32, tanh_float64


def activation_of(name: str, dtype: str) -> Any:
    """Return a scalar function for range kernels to call."""
    number: Any = dtypes.named(dtype).numpy.type
    zero, half, root = number(0), number(0.5), number(-(0.5**0.5))
    narrow = dtype == "float32"
    erfc = erfc_float32 if narrow else erfc_float64
    sigmoid = sigmoid_float32 if narrow else sigmoid_float64
    tanh = tanh_float32 if narrow else tanh_float64

    @inlined("contract")
    def identity(z: Any) -> Any:
        return z

    @inlined("contract")
    def relu(z: Any) -> Any:
        return zero if z < zero else z

    @inlined("contract")
    def gelu(z: Any) -> Any:
        return half * z * erfc(z * root)

    @inlined("contract")
    def silu(z: Any) -> Any:
        return z * sigmoid(z)

    known = {"identity": identity, "relu": relu, "gelu": gelu, "silu": silu, "tanh": tanh, "sigmoid": sigmoid}
    return known[name]
