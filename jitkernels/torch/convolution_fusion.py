"""Fuse convolutions with a batch norm of given moments, a residual, and ReLU, which their kernels compute.

Each must follow and be the only reader. The node before it is gone then; gradients, which read it, keep it.
"""

import operator as python_operators
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

aten = torch.ops.aten


def fused_convolution(
    x: Tensor, weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, normalization: Any,
    residual: Any, activation: str,
) -> Tensor:  # fmt: skip
    """What a fused node computes, by torch: where the compiler refuses it."""
    dimensions = weight.ndim - 2
    y = aten.convolution(x, weight, bias, stride, padding, dilation, False, [0] * dimensions, groups)
    if normalization is not None:
        scale, shift, mean, variance, eps = normalization
        y = torch.nn.functional.batch_norm(y, mean, variance, scale, shift, False, 0.0, eps)
    y = y if residual is None else y + residual
    return torch.relu(y) if activation == "relu" else y


fused_convolution.jitkernels_operator = "jitkernels.fused_convolution"  # type: ignore[attr-defined]


def fuse_convolutions(module: GraphModule) -> None:
    """Fuse the convolutions of a graph."""
    graph = module.graph
    for node in graph.find_nodes(op="call_function", target=aten.convolution.default):
        x, weight, bias, stride, padding, dilation, transposed, _, groups = node.args
        if transposed or node.meta["val"].ndim > 4:
            continue
        last, normalization = _batch_norm_after(node)
        after_addition, residual = _addition_after(last)
        after_relu = _reader(after_addition, aten.relu.default)
        end = after_relu or after_addition
        if end is node:
            continue
        with graph.inserting_before(end):
            new = graph.call_function(
                fused_convolution,
                (x, weight, bias, stride, padding, dilation, groups, normalization, residual,
                 "relu" if after_relu else "identity"),
            )  # fmt: skip
        new.meta.update(end.meta)
        end.replace_all_uses_with(new)
    graph.eliminate_dead_code()
    module.recompile()


def _reader(node: Node, target: Any) -> Node | None:
    """The only reader of a node, if it is of this operator."""
    (reader,) = node.users if len(node.users) == 1 else (None,)
    return reader if reader is not None and reader.target is target else None


def _batch_norm_after(node: Node) -> tuple[Node, Any]:
    """The result of a batch norm of given moments that reads a convolution, and its parameters."""
    reader = _reader(node, aten._native_batch_norm_legit_no_training.default)
    if reader is None or reader.args[0] is not node:
        return node, None
    items = [*reader.users]
    is_first_alone = len(items) == 1 and items[0].target is python_operators.getitem and items[0].args[1] == 0
    _, scale, shift, mean, variance, _, eps = reader.args
    return (items[0], (scale, shift, mean, variance, eps)) if is_first_alone else (node, None)


def _addition_after(node: Node) -> tuple[Node, Any]:
    """An addition of an array of the same shape that is known before, and that array."""
    reader = _reader(node, aten.add.Tensor)
    if reader is None or reader.kwargs or len(reader.args) != 2:
        return node, None
    other = reader.args[1] if reader.args[0] is node else reader.args[0]
    if not isinstance(other, Node) or other is node or not isinstance(other.meta.get("val"), Tensor):
        return node, None
    own, added = node.meta["val"], other.meta["val"]
    return (reader, other) if own.dtype == added.dtype and tuple(own.shape) == tuple(added.shape) else (node, None)
