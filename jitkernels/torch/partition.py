"""Divide graphs into parts that are compiled, and nodes that stay torch's."""

import operator as python_operators
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from jitkernels.torch.compiled_graph import CompiledGraph
from jitkernels.torch.dtypes import numpy_dtype
from jitkernels.torch.run_graph import SIZE_OPERATORS, SIZES, operator_of, overload_name


def partition(module: GraphModule) -> GraphModule | None:
    """The module with its compilable parts compiled; None where that is all of it."""
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    other = [node for node in module.graph.nodes if node.op in ("get_attr", "call_module", "call_method")]
    if not other and all(map(is_compilable, nodes)) and any(map(_computes, nodes)):
        return None
    divided = CapabilityBasedPartitioner(module, _Support()).partition_and_fuse()
    for name, part in [*divided.named_children()]:
        if name.startswith("fused_"):
            setattr(divided, name, _Part(part))
    return divided


class _Support(OperatorSupportBase):
    """Tells torch's partitioner which nodes are compiled."""

    def is_node_supported(self, submodules: Any, node: Node) -> bool:
        return node.op == "call_function" and is_compilable(node)


class _Part(torch.nn.Module):
    """A compiled part, as a module of the divided graph."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__()
        self.compiled = CompiledGraph(module.graph)
        (output,) = (node for node in module.graph.nodes if node.op == "output")
        self.is_single = not isinstance(output.args[0], tuple | list)

    def forward(self, *tensors: Any) -> Any:
        results = self.compiled(*tensors)
        return results[0] if self.is_single else results


def _computes(node: Node) -> bool:
    return node.target not in SIZE_OPERATORS


def is_compilable(node: Node) -> bool:
    """Whether a node is compiled: it has an operator, and all tensors lie in memory with dtypes of NumPy."""
    if node.target is python_operators.getitem:
        return isinstance(node.args[0], Node) and is_compilable(node.args[0])
    if node.target in SIZE_OPERATORS or overload_name(node.target) in SIZES:
        return True
    values = [node.meta.get("val"), *(one.meta.get("val") for one in node.all_input_nodes)]
    return operator_of(node) is not None and all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor that NumPy can share, or several, or a size."""
    if isinstance(value, torch.Tensor):
        return value.device.type == "cpu" and value.layout is torch.strided and numpy_dtype(value.dtype) is not None
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float | bool | torch.SymInt)
