"""Rewrite maximum pooling so that nothing keeps the places of maxima: gradients find them again in the inputs."""

import operator as python_operators
from typing import Any

import torch
from torch.fx import GraphModule, Node


def max_pool2d(x: Any, *window: Any) -> Any:
    """The maxima of windows, as a target of nodes; compiled code has its own."""
    return torch.ops.aten.max_pool2d_with_indices(x, *window)[0]


def max_pool2d_backward(dy: Any, x: Any, *window: Any) -> Any:
    """The cotangent of what is pooled, as a target of nodes. `window`: all five arguments of ATen's operator."""
    _, places = torch.ops.aten.max_pool2d_with_indices(x, *window)
    return torch.ops.aten.max_pool2d_with_indices_backward(dy, x, *window, places)


max_pool2d.jitkernels_operator = "jitkernels.max_pool2d"  # type: ignore[attr-defined]
max_pool2d_backward.jitkernels_operator = "jitkernels.max_pool2d_backward"  # type: ignore[attr-defined]


def rewrite_pooling(module: GraphModule) -> None:
    """Replace gradients that read places, and then poolings whose places nothing reads."""
    graph, aten = module.graph, torch.ops.aten
    for node in graph.find_nodes(op="call_function", target=aten.max_pool2d_with_indices_backward.default):
        dy, x, *window, places = node.args
        if len(window) == 5 and _is_place(places, x):
            with graph.inserting_before(node):
                new = graph.call_function(max_pool2d_backward, (dy, x, *window))
            _replace(node, new)
    for node in graph.find_nodes(op="call_function", target=aten.max_pool2d_with_indices.default):
        readers = [*node.users]
        if all(user.target is python_operators.getitem and user.args[1] == 0 or not user.users for user in readers):
            with graph.inserting_before(node):
                new = graph.call_function(max_pool2d, node.args)
            new.meta["val"] = node.meta["val"][0]
            for user in readers:
                user.replace_all_uses_with(new)
                graph.erase_node(user)
            graph.erase_node(node)
    module.recompile()


def _is_place(node: Any, x: Any) -> bool:
    """Whether a node is the places of maxima of x in the same graph."""
    is_item = isinstance(node, Node) and node.target is python_operators.getitem and node.args[1] == 1
    return is_item and isinstance(node.args[0], Node) and node.args[0].args[0] is x


def _replace(node: Node, new: Node) -> None:
    new.meta.update(node.meta)
    node.replace_all_uses_with(new)
    node.graph.erase_node(node)
