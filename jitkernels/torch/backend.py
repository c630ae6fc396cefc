"""The backend `jitkernels` of `torch.compile`: compile graphs of ATen operators, forward and backward."""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch.fx import GraphModule

from jitkernels.torch.decompositions import decompositions
from jitkernels.torch.fuse_convolutions import fuse_convolutions
from jitkernels.torch.partition import CompiledModule
from jitkernels.torch.rewrite_pooling import rewrite_pooling


def compile_graph(graph: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile a graph that `torch.compile` has captured: ``torch.compile(model, backend="jitkernels")``."""
    compiler = aot_autograd(
        fw_compiler=_compile, bw_compiler=partial(_compile, is_backward=True), inference_compiler=_compile_inference,
        decompositions=decompositions(), partition_fn=_partition_joint,
    )  # fmt: skip
    return compiler(graph, example_inputs)  # type: ignore[no-any-return]


def _partition_joint(joint: GraphModule, inputs: Any, **options: Any) -> Any:
    """Divide a graph of both directions, in which the gradients of pooling read its inputs."""
    rewrite_pooling(joint)
    return min_cut_rematerialization_partition(joint, inputs, **options)


def _compile(graph: GraphModule, example_inputs: Sequence[Any], *, is_backward: bool = False) -> Callable[..., Any]:
    metadata = _metadata()
    visible = 0 if is_backward or metadata is None else metadata.num_forward_returns
    return _compiled(graph, (), visible)


def _compile_inference(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    metadata = _metadata()
    static = () if metadata is None else tuple(metadata.static_input_indices or ())
    return _compiled(graph, static, sys.maxsize)


def _metadata() -> Any:
    """What AOTAutograd knows of a function that it compiles."""
    context = TracingContext.try_get()
    return None if context is None else context.fw_metadata


def _compiled(graph: GraphModule, static: Sequence[int], visible: int) -> Callable[..., Any]:
    rewrite_pooling(graph)
    fuse_convolutions(graph)
    inputs = graph.graph.find_nodes(op="placeholder")
    module = CompiledModule(graph, {inputs[i] for i in static}, visible)
    return make_boxed_func(module.forward)  # type: ignore[no-any-return]
