"""Divide graphs into parts that are compiled, and nodes that stay torch's."""

import operator as python_operators
import weakref
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from jitkernels.torch.compiled_graph import CompiledGraph, NodeError, layout_of, with_layout
from jitkernels.torch.run_graph import SIZE_OPERATORS, SIZES, operator_of, overload_name
from jitkernels.torch.torch_dtypes import numpy_dtype

live_modules: "weakref.WeakSet[CompiledModule]" = weakref.WeakSet()
"""All compiled graphs that are in use, for inspection."""


class CompiledModule(torch.nn.Module):  # type: ignore[misc]
    """A graph as a module, compiled but for the nodes that cannot be, which torch runs.

    `reasons`: these nodes, and why. `static` as in `CompiledGraph`. `visible`: the first of so many outputs have the
    strides that torch infers. Graphs that write to tensors that they compute are left to torch whole: a compiled part
    gives no views. AOTAutograd's write to nothing but their inputs.
    """

    def __init__(self, module: GraphModule, static: Collection[Node] = (), visible: int = 0) -> None:
        super().__init__()
        self.reasons: dict[Node, str] = {}
        object.__setattr__(self, "source", module)  # no submodule: it is not run
        self._static = static
        (output,) = module.graph.find_nodes(op="output")
        self._is_single = not isinstance(output.args[0], tuple | list)
        outputs = (output.args[0],) if self._is_single else output.args[0]
        self._layouts = [layout_of(one.meta.get("val")) if isinstance(one, Node) else None for one in outputs[:visible]]
        for node in self._computing():
            if _writes_result(node):
                self.reasons = dict.fromkeys(self._computing(), f"{node.name} writes to a tensor of the graph")
                break
            if not is_compilable(node):
                self.reasons[node] = "no operator, or a tensor that NumPy cannot share"
        self._call = self._planned()
        live_modules.add(self)

    def _computing(self) -> list[Node]:
        """The nodes that compute something."""
        nodes = self.source.graph.nodes
        return [node for node in nodes if node.op == "call_function" and node.target is not python_operators.getitem]

    @property
    def functions(self) -> list[Any]:
        """The compiled functions of all parts."""
        if isinstance(self._call, CompiledGraph):
            return self._call.functions
        parts = (part for part in self._call.children() if isinstance(part, CompiledModule))
        return [function for part in parts for function in part.functions]

    def _planned(self) -> Any:
        if not self.reasons:
            return CompiledGraph(self.source, self._static)
        if len(self.reasons) == len(self._computing()):
            return self.source
        return _divided(self.source, self.reasons, self._static)

    def forward(self, *tensors: Any) -> Any:
        """The outputs. A node that turns out not to be compilable stays torch's from then on."""
        while True:
            try:
                results = self._call(*tensors)
            except NodeError as error:
                self.reasons |= dict.fromkeys(self._computing() if error.node is None else [error.node], error.reason)
                self._call = self._planned()
                continue
            if self._is_single and not isinstance(self._call, CompiledGraph):
                results = (results,)
            if self._layouts:
                conformed = [
                    one if layout is None or one.stride() == layout else with_layout(one, layout)
                    for one, layout in zip(results, self._layouts, strict=False)
                ]
                results = (*conformed, *results[len(conformed) :])
            return results[0] if self._is_single else results


def _divided(module: GraphModule, reasons: Mapping[Node, str], static: Collection[Node]) -> GraphModule:
    """The module with its compilable parts as modules of their own."""
    support = _Support({node.name for node in reasons})
    divided: GraphModule = CapabilityBasedPartitioner(
        module, support, allows_single_node_partition=True
    ).partition_and_fuse()
    names = {node.name for node in static}
    for node in [*divided.graph.nodes]:
        if node.op == "call_function":
            _conform_operands(node)
        if node.op != "call_module":
            continue
        part = divided.get_submodule(node.target)
        inputs = part.graph.find_nodes(op="placeholder")
        own = {inner for inner, outer in zip(inputs, node.args, strict=True) if outer.name in names}
        setattr(divided, node.target, CompiledModule(part, own))
    divided.recompile()
    return divided


def _conform_operands(node: Node) -> None:
    """Give the operands of a node that torch runs the strides that torch infers, which some of its kernels rely on."""
    for operand in node.all_input_nodes if node.target is not python_operators.getitem else ():
        layout = layout_of(operand.meta.get("val"))
        if layout is not None:
            with node.graph.inserting_before(node):
                conformed = node.graph.call_function(with_layout, (operand, layout))
            node.replace_input_with(operand, conformed)


class _Support(OperatorSupportBase):  # type: ignore[misc]
    """Tells torch's partitioner which nodes are compiled: all but those of these names."""

    def __init__(self, excluded: Collection[str]) -> None:
        self._excluded = excluded

    def is_node_supported(self, submodules: Any, node: Node) -> bool:  # noqa: ARG002  # torch calls it
        is_item = node.target is python_operators.getitem
        source = node.args[0] if is_item else node
        return node.op == "call_function" and isinstance(source, Node) and source.name not in self._excluded


def _writes_result(node: Node) -> bool:
    """Whether a node writes to the result of another one."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return False
    written = [one.name for one in schema.arguments if one.is_write]
    operands = {one.name: value for one, value in zip(schema.arguments, node.args, strict=False)} | node.kwargs
    values = (operands.get(name) for name in written)
    return any(isinstance(value, Node) and value.op == "call_function" for value in values)


def is_compilable(node: Node) -> bool:
    """Whether a node may be compiled: it has an operator, and all tensors lie in memory with dtypes of NumPy."""
    if node.target is python_operators.getitem:
        return isinstance(node.args[0], Node) and is_compilable(node.args[0])
    if node.target in SIZE_OPERATORS or overload_name(node.target) in SIZES:
        return True
    values = [node.meta.get("val"), *(one.meta.get("val") for one in node.all_input_nodes if one.op != "get_attr")]
    return operator_of(node) is not None and all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    """Whether a value is a tensor that NumPy can share, or several, or a size."""
    if isinstance(value, torch.Tensor):
        return value.device.type == "cpu" and value.layout is torch.strided and numpy_dtype(value.dtype) is not None
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, int | float | bool | torch.SymInt)
