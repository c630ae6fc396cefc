"""The backend `jitkernels` of `torch.compile`: compile graphs of ATen operators, forward and backward."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch.fx import GraphModule

from jitkernels.core.fork_locks import build_lock
from jitkernels.dispatch.native import launcher
from jitkernels.errors import ArgumentError
from jitkernels.runtime.loading import build_ahead
from jitkernels.runtime.threads.team_size import share_openmp_threads
from jitkernels.torch.aten_decompositions import decompositions
from jitkernels.torch.compiled_module import CompiledModule
from jitkernels.torch.convolution_fusion import fuse_convolutions
from jitkernels.torch.rewrite_pooling import rewrite_pooling

FREEZE = "freeze"
"""The option."""


def compile_graph(
    graph: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any
) -> Callable[..., Any]:
    """Compile a graph that `torch.compile` has captured: ``torch.compile(model, backend="jitkernels")``.

    `options`: with ``{"freeze": True}`` parameters and buffers are constants of code that runs without gradients, until
    one is replaced, or written to by an operation of torch. Writes through ``.data`` are not seen. Raises ArgumentError
    for other options.
    """
    unknown = set(options or {}) - {FREEZE}
    if unknown:
        raise ArgumentError(f"options: expected {FREEZE!r} alone, got {', '.join(map(repr, sorted(unknown)))}")
    freezes = bool((options or {}).get(FREEZE, False))
    share_openmp_threads()  # what stays torch's runs on them
    with build_lock, build_ahead.building_ahead(cached=True):
        launcher.begin_build()  # most traces call kernels
    return aot_autograd(**aot_compilers(freezes=freezes))(graph, example_inputs)  # type: ignore[no-any-return]


def aot_compilers(*, freezes: bool) -> dict[str, Any]:
    """What AOTAutograd calls for the graphs of both directions, and how it makes them."""
    return {
        "fw_compiler": _compile, "bw_compiler": _compile_backward, "decompositions": decompositions(),
        "inference_compiler": partial(_compile_inference, freezes=freezes), "partition_fn": _partition_joint,
    }  # fmt: skip


def _partition_joint(joint: GraphModule, inputs: Any, **options: Any) -> Any:
    """Divide a graph of both directions, in which the gradients of pooling read its inputs."""
    rewrite_pooling(joint)
    return min_cut_rematerialization_partition(joint, inputs, **options)


def _compile(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """The forward graph of a training step: what is kept for gradients lies as kernels write it."""
    metadata = _metadata()
    return _compiled(graph, (), sys.maxsize if metadata is None else metadata.num_forward_returns)


def _compile_backward(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    return _compiled(graph, (), sys.maxsize)


def _compile_inference(graph: GraphModule, example_inputs: Sequence[Any], *, freezes: bool) -> Callable[..., Any]:
    metadata = _metadata()
    static = () if metadata is None or not freezes else tuple(metadata.static_input_indices or ())
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
