"""Products with weights of 8 or 4 bits, quantized in blocks: onnxruntime's MatMulNBits."""

from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.onnx.operator_registry import operator
from jitkernels.onnx.values import NotServedError

ACCURACY_INT8 = 4
"""The ``accuracy_level`` that allows to round activations to 8 bits."""
WIDTHS = (4, 8)
"""Bits of weights."""


@operator("MatMulNBits", domain="com.microsoft")
def matmul_nbits(a: Any, packed: Any, scales: Any, *rest: Any, node: Any) -> Any:
    """``a @ w.T``, where w[j, p] is ``scales[j, g] * (q[j, p] - zeros[j, g])`` for p in block g."""
    zeros, group_index, bias = (*rest, *(None,) * 3)[:3]
    of = node.attributes
    inputs, outputs, block_size, bits = of["K"], of["N"], of["block_size"], of.get("bits", 4)
    if group_index is not None or bits not in WIDTHS:
        raise NotServedError(f"weights of {bits} bits, or blocks in another order")
    groups = -(-inputs // block_size)
    scales = np.reshape(scales, (outputs, groups)).astype(np.float32)
    x = a.astype(np.float32)
    if groups * block_size > inputs:
        x = np.pad(x, [*((0, 0),) * (x.ndim - 1), (0, groups * block_size - inputs)])
    packed = np.reshape(packed, (outputs, groups, -1))
    rounded: Any = "int8" if of.get("accuracy_level") == ACCURACY_INT8 else "float"
    if zeros is not None and zeros.dtype != np.uint8:
        product = np.matmul(x, _weights(packed, scales, np.reshape(zeros, (outputs, groups)), bits))
    elif bits == 8:
        shift = None if zeros is None else _signed(np.reshape(zeros, (outputs, groups)))
        product = jk.matmul_int8_weights(x, _signed(packed), scales, zero=shift, rounded=rounded)
    else:
        shift = None if zeros is None else _unpacked(np.reshape(zeros, (outputs, -1)))[:, :groups]
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
