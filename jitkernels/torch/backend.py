"""The backend `jitkernels` of `torch.compile`: compile graphs of ATen operators, forward and backward."""

from collections.abc import Callable, Sequence
from typing import Any

from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch.fx import GraphModule

from jitkernels.torch.decompositions import decompositions
from jitkernels.torch.partition import CompiledModule
from jitkernels.torch.rewrite_pooling import rewrite_pooling


def compile_graph(graph: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile a graph that `torch.compile` has captured: ``torch.compile(model, backend="jitkernels")``."""
    compiler = aot_autograd(
        fw_compiler=_compile, bw_compiler=_compile, inference_compiler=_compile_inference,
        decompositions=decompositions(), partition_fn=_partition_joint,
    )  # fmt: skip
    return compiler(graph, example_inputs)


def _partition_joint(joint: GraphModule, inputs: Any, **options: Any) -> Any:
    """Divide a graph of both directions, in which the gradients of pooling read its inputs."""
    rewrite_pooling(joint)
    return min_cut_rematerialization_partition(joint, inputs, **options)


def _compile(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    return _compiled(graph, ())


def _compile_inference(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    context = TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    return _compiled(graph, () if metadata is None else tuple(metadata.static_input_indices or ()))


def _compiled(graph: GraphModule, static: Sequence[int]) -> Callable[..., Any]:
    rewrite_pooling(graph)
    inputs = graph.graph.find_nodes(op="placeholder")
    module = CompiledModule(graph, {inputs[i] for i in static})
    return make_boxed_func(module.forward)  # type: ignore[no-any-return]
