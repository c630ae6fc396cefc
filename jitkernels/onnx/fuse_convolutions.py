"""Fold what follows a convolution into it: scales and terms of channels into its constants, a residual, and Relu.

A batch normalization with given moments is a factor and a term of each channel, and so are Mul and Add of constants.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jitkernels.onnx.model_graph import ELEMENTWISE, OnnxNode
from jitkernels.onnx.weights import LazyArray, Weights

CHANNELS_LAST = (
    "Conv", "QLinearConv", "ConvInteger", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool",
    "ConvTranspose",
)  # fmt: skip
"""Operators whose results are channels last in memory."""
KEEPING_ORDER = ELEMENTWISE | {
    "BatchNormalization",
    "LRN",
    "Dropout",
    "Concat",
    "Pad",
    "Resize",
    "Slice",
    "Split",
    "Reshape",
    "Transpose",
    "Upsample",
}
"""Operators whose results lie as their first operand does."""


def fuse_convolutions(
    nodes: Sequence[OnnxNode], outputs: Iterable[str], constants: Weights
) -> tuple[tuple[OnnxNode, ...], set[OnnxNode]]:
    """The nodes with convolutions that contain what follows them, and the nodes that are gone.

    A convolution takes the place of the last node that it contains: its residual is there by then.
    """
    uses = Counter(name for node in nodes for name in node.reads)
    uses.update(outputs)
    readers = {name: node for node in nodes for name in node.reads}
    taken = {*constants, *uses, *(name for node in nodes for name in node.outputs)}
    gone: set[OnnxNode] = set()
    new: dict[OnnxNode, OnnxNode] = {}
    for node in nodes:
        if node.op != "Conv" or node.domain or not _is_foldable(node, constants):
            continue
        result, last = node, node
        while uses[result.outputs[0]] == 1 and result.outputs[0] in readers:
            follower = readers[result.outputs[0]]
            folded = None if follower in gone else _folded(result, follower, constants, taken)
            if folded is None:
                break
            gone.add(follower)
            result, last = folded, follower
        if result is not node:
            gone.add(node)
            new[last] = replace(result, proto=None)
    return tuple(new.get(node, node) for node in nodes if node in new or node not in gone), gone


def _is_foldable(node: OnnxNode, constants: Weights) -> bool:
    """Whether the filters and the bias of a convolution are constant floats of fitting shapes."""
    names = [name for name in node.inputs[1:] if name]
    if not all(name in constants and constants.dtype(name) in (np.float32, np.float64) for name in names):
        return False
    extents = constants.shape(node.inputs[1])
    return len(extents) > 2 and all(constants.shape(name) == extents[:1] for name in names[1:])


def _folded(conv: OnnxNode, node: OnnxNode, constants: Weights, taken: set[str]) -> OnnxNode | None:
    """A convolution that contains the node behind it; None where it cannot."""
    if node.domain or "activation" in conv.attributes or any(node.outputs[1:]):
        return None
    if node.op == "Relu":
        return replace(conv, outputs=node.outputs, attributes={**conv.attributes, "activation": "relu"})
    if any(conv.inputs[3:]):
        return None
    extents = constants.shape(conv.inputs[1])
    filters = extents[0]
    shape = (filters, *(1,) * (len(extents) - 2))
    factor: Any = None
    term: Any = None
    if node.op == "BatchNormalization":
        moments = node.inputs[1:5]
        if node.attributes.get("training_mode") or not all(
            name in constants and constants.shape(name) == (filters,) for name in moments
        ):
            return None
        scale, bias, mean, variance = (constants[name].astype(np.float64) for name in moments)
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(variance + node.attributes.get("epsilon", 1e-5))
            term = bias - mean * factor
    elif node.op in ("Mul", "Add") or (node.op == "Sum" and len(node.inputs) == 2):
        other = next((name for name in node.inputs if name != conv.outputs[0]), "")
        if node.op != "Mul" and other and other not in constants:
            if "broadcast" in node.attributes:  # along an axis that the attribute gives, before opset 7
                return None
            bias = conv.inputs[2] if len(conv.inputs) > 2 else ""
            return replace(conv, inputs=(*conv.inputs[:2], bias, other), outputs=node.outputs)
        if other not in constants:
            return None
        other_shape = constants.shape(other)
        if other_shape[-len(shape) :] != shape or math.prod(other_shape) != filters or len(other_shape) > len(extents):
            return None
        values = constants[other].reshape(-1).astype(np.float64)
        factor, term = (values, None) if node.op == "Mul" else (None, values)
    else:
        return None
    names = _new_name(f"{node.outputs[0]} (filters)", taken), _new_name(f"{node.outputs[0]} (bias)", taken)
    return replace(_scaled(conv, names, factor, term, constants), outputs=node.outputs[:1])


def _new_name(name: str, taken: set[str]) -> str:
    """A name that the model does not use, which is taken from now on."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _scaled(conv: OnnxNode, names: tuple[str, str], factor: Any, term: Any, constants: Weights) -> OnnxNode:
    """A convolution whose filters and bias, of new names, contain a factor and a term of each channel."""
    filters, dtype, shape = conv.inputs[1], constants.dtype(conv.inputs[1]), constants.shape(conv.inputs[1])
    has_bias = len(conv.inputs) > 2 and conv.inputs[2]
    bias = constants[conv.inputs[2]].astype(np.float64) if has_bias else np.zeros(shape[0])
    scaled, biased = names
    if factor is not None:
        scales = factor.astype(dtype).reshape(-1, *(1,) * (len(shape) - 1))
        constants[scaled] = LazyArray(shape, dtype, lambda: constants[filters] * scales)
        bias = bias * factor
    if term is not None:
        bias = bias + term
    constants[biased] = bias.astype(dtype)
    inputs = conv.inputs[0], filters if factor is None else scaled, biased
    return replace(conv, inputs=inputs)


def mark_channels_last(nodes: Sequence[OnnxNode]) -> None:
    """Tell nodes whose operands lie with channels last in memory: they compute there, without transposing."""
    last: set[str] = set()
    for node in nodes:
        is_last = node.op in CHANNELS_LAST or (
            node.op in KEEPING_ORDER and any(name in last for name in node.inputs[: None if node.op == "Concat" else 2])
        )
        if node.op == "Transpose":  # of channels among themselves, as a shuffle does
            perm = node.attributes.get("perm") or [-1]
            is_last = is_last and [perm[0], *perm[-2:]] == [0, len(perm) - 2, len(perm) - 1]
        if is_last and not node.domain:
            last.update(node.outputs)
            node.is_channels_last = node.op in KEEPING_ORDER and not node.attributes.get("block_size")
