"""Products with constant weights that a model dequantizes: MatMulNBits, which reads a quarter of the bytes, or less.

``MatMul(x, DequantizeLinear(w))``, and Gemm alike, for weights of 8 or 4 bits with a scale for all of them, for each
column, or for each block of a column.
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitkernels.onnx.model_graph import OnnxNode
from jitkernels.onnx.narrow_types import widened
from jitkernels.onnx.values import constant

OFFSETS = {"int8": 128, "uint8": 0, "int4": 8, "uint4": 0}
"""By type, what makes weights numbers from 0 on."""


def fuse_quantized_weights(
    nodes: Sequence[OnnxNode], constants: MutableMapping[str, Any]
) -> tuple[tuple[OnnxNode, ...], set[OnnxNode]]:
    """The nodes with such products in place of those of dequantized weights, and the nodes that are gone."""
    makers = {
        name: node for node in nodes if node.op == "DequantizeLinear" and not node.domain for name in node.outputs
    }
    new = {node: product for node in nodes if (product := _fused(node, makers, constants)) is not None}
    return tuple(new.get(node, node) for node in nodes), {*new}


def _fused(node: OnnxNode, makers: dict[str, OnnxNode], constants: MutableMapping[str, Any]) -> OnnxNode | None:
    """The product of quantized weights that computes a node; None where there is none."""
    if node.domain or node.op not in ("MatMul", "Gemm") or node.inputs[1] not in makers:
        return None
    of, maker = node.attributes, makers[node.inputs[1]]
    is_plain = not of.get("transA") and of.get("alpha", 1.0) == 1 and of.get("beta", 1.0) == 1
    if not is_plain or not all(name in constants for name in maker.reads):
        return None
    weights, scale, *zero = (constants[name] for name in maker.reads)
    if weights.dtype.name not in OFFSETS or weights.ndim != 2 or scale.dtype != np.float32:
        return None
    outputs = 0 if of.get("transB") else 1
    columns = _by_blocks(maker, weights.shape, outputs, [scale, *map(widened, zero)])
    if columns is None:
        return None
    offset, bits = OFFSETS[weights.dtype.name], 4 if weights.dtype.name.endswith("int4") else 8
    numbers: Any = widened(weights).astype(np.int16) + offset
    numbers = numbers if outputs == 0 else numbers.T
    (n, k), groups = numbers.shape, columns[0].shape[1]
    block = maker.attributes.get("block_size", 0) or k + k % 2
    zeros = columns[1].astype(np.int16) + offset if zero else np.full((n, groups), offset)
    numbers = np.pad(numbers, ((0, 0), (0, groups * block - k))).astype(np.uint8)
    shifts: Any = np.pad(zeros, ((0, 0), (0, groups % 2))).astype(np.uint8)
    if bits == 4 and block % 2:
        return None
    if bits == 4:
        numbers, shifts = numbers[:, 0::2] | numbers[:, 1::2] << 4, shifts[:, 0::2] | shifts[:, 1::2] << 4
    else:
        shifts = zeros.astype(np.uint8)
    base = f"{node.inputs[1]} ({'rows' if outputs == 0 else 'columns'})"
    names = [f"{base}: {what}" for what in ("numbers", "scales", "zeros")]
    arrays = (numbers.reshape(n, groups, -1), columns[0].reshape(-1), shifts.reshape(-1))
    constants.update(zip(names, map(constant, arrays), strict=True))
    if not zero and offset or (zeros == (8 if bits == 4 else 128)).all():
        names[2] = ""
    attributes = {"K": k, "N": n, "bits": bits, "block_size": block}
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    inputs = (node.inputs[0], *names, "", bias)
    return replace(
        node, op="MatMulNBits", domain="com.microsoft", opset=1, inputs=inputs, attributes=attributes, proto=None
    )


def _by_blocks(maker: OnnxNode, shape: Sequence[int], outputs: int, values: Sequence[Any]) -> list[Any] | None:
    """Scale and zero point as [outputs, blocks]; None where they go along another axis."""
    axis = maker.attributes.get("axis", 1) % 2
    n = shape[outputs]
    results = []
    for value in values:
        if value.size == 1 and not maker.attributes.get("block_size", 0):
            results.append(np.full((n, 1), value.reshape(-1)[0]))
        elif value.ndim == 1 and axis == outputs and not maker.attributes.get("block_size", 0):
            results.append(value.reshape(n, 1))
        elif value.ndim == 2 and axis != outputs and maker.attributes.get("block_size", 0):
            results.append(np.ascontiguousarray(value if outputs == 0 else value.T))
        else:
            return None
    return results
