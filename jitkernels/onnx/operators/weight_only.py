"""Products with weights of 8 or 4 bits, quantized in blocks: onnxruntime's MatMulNBits."""

from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError

ACCURACY_INT8 = 4
"""The ``accuracy_level`` that allows to round activations to 8 bits."""
MIDDLE = {4: 8, 8: 128}
"""By bits, the zero point of weights without one."""


@operator("MatMulNBits", domain="com.microsoft")
def matmul_nbits(
    a: Any, packed: Any, scales: Any, zeros: Any = None, group_index: Any = None, bias: Any = None, *, K: int, N: int,  # noqa: N803
    block_size: int, bits: int = 4, accuracy_level: int = 0,
) -> Any:  # fmt: skip
    """``a @ w.T``, where w[j, p] is ``scales[j, g] * (q[j, p] - zeros[j, g])`` for p in block g."""
    if group_index is not None or bits not in MIDDLE:
        raise NotServedError(f"weights of {bits} bits, or blocks in another order")
    groups = -(-K // block_size)
    scales = np.reshape(scales, (N, groups)).astype(np.float32)
    x = a.astype(np.float32)
    if groups * block_size > K:
        x = np.pad(x, [*((0, 0),) * (x.ndim - 1), (0, groups * block_size - K)])
    packed = np.reshape(packed, (N, groups, -1))
    rounded: Any = "int8" if accuracy_level == ACCURACY_INT8 else "float"
    if zeros is not None and zeros.dtype != np.uint8:
        product = np.matmul(x, _weights(packed, scales, np.reshape(zeros, (N, groups)), bits))
    elif bits == 8:
        shift = None if zeros is None else _signed(np.reshape(zeros, (N, groups)))
        product = jk.matmul_int8_weights(x, _signed(packed), scales, zero=shift, rounded=rounded)
    else:
        shift = None if zeros is None else _unpacked(np.reshape(zeros, (N, -1)))[:, :groups]
        product = jk.matmul_int4(x, packed, scales, zero=shift, rounded=rounded)
    product = product if bias is None else product + bias
    return product.astype(a.dtype)


def _signed(values: Any) -> Any:
    """Bytes less 128."""
    return (values.astype(np.int16) - np.int16(128)).astype(np.int8)


def _unpacked(bytes_: Any) -> Any:
    """The two numbers of each byte, the lower half first."""
    both = np.stack([bytes_ & np.uint8(15), bytes_ >> np.uint8(4)], axis=-1)
    return np.reshape(both, (*bytes_.shape[:-1], 2 * bytes_.shape[-1]))


def _weights(packed: Any, scales: Any, zeros: Any, bits: int) -> Any:
    """Weights [inputs, outputs] in float32."""
    numbers = (_unpacked(packed) if bits == 4 else packed).astype(np.float32)
    weights = (numbers - zeros.astype(np.float32)[..., None]) * scales[..., None]
    return np.transpose(np.reshape(weights, (weights.shape[0], -1)))
