"""Fold quantized models, whose operators compute on dequantized numbers, onto operators of integers.

``QuantizeLinear(Relu(Conv(DequantizeLinear(x), DequantizeLinear(w), DequantizeLinear(b))))`` is QLinearConv, with or
without Relu; without QuantizeLinear behind it gives floats. The sums of integers are exact, so results differ from
those of floats by the rounding of these alone.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from jitkernels.attrs.quantize import BYTES
from jitkernels.onnx.model_graph import OnnxNode
from jitkernels.onnx.weights import Weights

ROUNDING = 2.0**-20
"""The relative difference of the scale of a bias and the product of scales that it stands for."""


def fuse_quantized_convolutions(
    nodes: Sequence[OnnxNode], outputs: Iterable[str], constants: Weights
) -> tuple[tuple[OnnxNode, ...], set[OnnxNode]]:
    """The nodes with convolutions of integers, and the nodes that these contain."""
    uses = Counter(name for node in nodes for name in node.reads)
    uses.update(outputs)
    readers = {name: node for node in nodes for name in node.reads}
    makers = {
        name: node for node in nodes if node.op == "DequantizeLinear" and not node.domain for name in node.outputs
    }
    new: dict[OnnxNode, OnnxNode] = {}
    gone: set[OnnxNode] = set()
    for node in nodes:
        inputs = _quantized_inputs(node, makers, constants)
        if inputs is None:
            continue
        chain, attributes, result = [node], dict(node.attributes), ["", ""]
        follower = _follower(node, uses, readers)
        if follower is not None and follower.op == "Relu":
            chain.append(follower)
            attributes["activation"] = "relu"
            follower = _follower(follower, uses, readers)
        if follower is not None and follower.op == "QuantizeLinear" and _is_of_all(follower, constants):
            chain.append(follower)
            result = [*follower.inputs[1:]]
        last = chain[-1]
        new[last] = replace(
            last,
            op="QLinearConv",
            opset=10,
            inputs=(*inputs[:6], *result, inputs[6]),
            attributes=attributes,
            proto=None,
        )
        gone.update(chain)
    return tuple(new.get(node, node) for node in nodes if node in new or node not in gone), gone


def _follower(node: OnnxNode, uses: Mapping[str, int], readers: Mapping[str, OnnxNode]) -> OnnxNode | None:
    """The only node that reads the result of a node; None where there are others, or none."""
    (name, *_) = node.outputs
    follower = readers.get(name) if uses[name] == 1 else None
    return None if follower is None or follower.domain or follower.inputs[0] != name else follower


def _is_of_all(node: OnnxNode, constants: Weights) -> bool:
    """Whether a node (de)quantizes all numbers by one constant scale and zero point, to or from bytes."""
    scale, zero = (*node.inputs, "", "")[1:3]
    if not {scale, zero} <= constants.keys() or {"output_dtype", "block_size", "precision"} & _set(node):
        return False
    is_single = all(constants.shape(name) in ((), (1,)) for name in (scale, zero))
    return is_single and constants.dtype(scale) == np.float32 and constants.dtype(zero).name in BYTES


def _set(node: OnnxNode) -> set[str]:
    """The attributes of a node that are not 0."""
    return {name for name, value in node.attributes.items() if value}


def _quantized_inputs(node: OnnxNode, makers: Mapping[str, OnnxNode], constants: Weights) -> list[str] | None:
    """Image, filters with scales and zero points, and the bias, of a Conv of such; None for any other node."""
    names = (*node.inputs, "")[:3]
    if node.op != "Conv" or node.domain or any(name not in makers for name in names if name):
        return None
    image, filters = makers[names[0]], makers[names[1]]
    if image.inputs[0] in constants or not _is_of_all(image, constants) or not _are_filters(filters, constants):
        return None
    bias = "" if not names[2] else _integer_bias(makers[names[2]], image, filters, constants)
    if bias is None:
        return None
    return [*image.inputs[:3], *(*filters.inputs, "")[:3], bias]


def _are_filters(node: OnnxNode, constants: Weights) -> bool:
    """Whether a node dequantizes constant filters, by one scale or one of each filter."""
    if not all(name in constants for name in node.reads) or {"output_dtype", "block_size"} & _set(node):
        return False
    weights, scale, *zero = node.reads
    shape = constants.shape(weights)
    if constants.dtype(weights).name not in BYTES or len(shape) < 3 or constants.dtype(scale) != np.float32:
        return False
    is_along = node.attributes.get("axis", 1) % len(shape) == 0
    known = [(), (1,), *([shape[:1]] if is_along else [])]
    return all(constants.shape(name) in known for name in (scale, *zero))


def _integer_bias(node: OnnxNode, image: OnnxNode, filters: OnnxNode, constants: Weights) -> str | None:
    """The bias in int32, if its scale is the product of the others' and it has no zero point; else None."""
    if not all(name in constants for name in node.reads) or {"output_dtype", "block_size"} & _set(node):
        return None
    bias, scale, *zero = node.reads
    if constants.dtype(bias) != np.int32 or any(np.any(constants[name]) for name in zero):
        return None
    product = constants[image.inputs[1]].reshape(-1).astype(np.float64) * constants[filters.inputs[1]].reshape(-1)
    own = constants[scale].reshape(-1).astype(np.float64)
    is_product = own.size in (1, product.size) or product.size == 1
    return bias if is_product and np.allclose(own, product, rtol=ROUNDING, atol=0) else None
