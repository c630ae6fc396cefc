"""Run one node on values: an operator's function over traced arrays, or over NumPy's."""

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

import numpy as np

from jitkernels.compiler.capture.static_arrays import Frozen
from jitkernels.compiler.capture.trace_context import current
from jitkernels.compiler.ir.elementwise_ops import is_known
from jitkernels.onnx.model_graph import ELEMENTWISE, OnnxGraph, OnnxNode
from jitkernels.onnx.narrow_types import NarrowArray, has_narrow, narrowed, widened
from jitkernels.onnx.values import NotServedError, is_traced, materialized, settled
from jitkernels.onnx.weights import Values


class BoundGraph:
    """A graph inside of a node, with the values around it that it reads: a function of its inputs."""

    def __init__(self, graph: OnnxGraph, around: MutableMapping[str, Any]) -> None:
        self.graph = graph
        self._captured = {name: around[name] for name in graph.captured}

    def prepare_constants(self) -> None:
        """Make the constants part of the trace: inside of branches and loops of compiled code none can be added."""
        tracer = current()
        assert tracer is not None, "a branch is traced"
        self.graph.executor.nodes  # noqa: B018  # this computes more constants
        for array in self.graph.executor.constants.values():
            if type(array) is Frozen and array.ndim and is_known(array.dtype):
                tracer.frozen_array(array)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs of the graph: traced inline in a trace, compiled by itself elsewhere."""
        graph = self.graph
        if current() is None:
            names = (*graph.input_names, *graph.captured)
            values = dict(zip(names, (*inputs, *self._captured.values()), strict=False))
            return tuple(graph.executor.run(values))
        nodes = graph.executor.nodes  # this computes more constants
        known = {**self._captured, **dict(zip(graph.input_names, inputs, strict=False))}
        values = Values(graph.executor.constants, known)
        run_nodes(nodes, values)
        return tuple(values[name] for name in graph.output_names)


def run_nodes(nodes: Iterable[OnnxNode], values: MutableMapping[str, Any]) -> None:
    """Run nodes in their order on the values of names, to which their results are added."""
    for node in nodes:
        run_node(node, values)


def run_node(node: OnnxNode, values: MutableMapping[str, Any]) -> None:
    """Run one node. Raises NotServedError where there is no operator for it."""
    operator = node.operator
    if operator is None:
        raise NotServedError(f"no operator {node.op} of opset {node.opset}")
    inputs = [values[name] if name else None for name in node.inputs]
    if not operator.sizes or any(map(is_traced, inputs)):
        inputs = [value if i in operator.static else _materialized(value) for i, value in enumerate(inputs)]
    keywords: dict[str, Any] = {}
    for name in operator.keywords:
        if name == "node":
            keywords[name] = node
        elif name in node.attributes:
            value = node.attributes[name]
            keywords[name] = BoundGraph(value, values) if isinstance(value, OnnxGraph) else value
    if not operator.narrow and any(map(has_narrow, inputs)):
        results = _rounded(node, inputs, _results(operator.function(*map(widened, inputs), **keywords)))
    elif node.is_channels_last and node.op in ELEMENTWISE and _are_images(inputs):
        results = tuple(map(_channels_first, _results(operator.function(*map(_channels_last, inputs), **keywords))))
    else:
        results = _results(operator.function(*inputs, **keywords))
    for name, value in zip(node.outputs, results, strict=False):
        if name:
            values[name] = value if type(value) is NarrowArray else settled(value)


def _are_images(inputs: Sequence[Any]) -> bool:
    """Whether operands are arrays of four dimensions, or broadcast to these from the channels on."""
    return any(is_traced(one) and one.ndim == 4 for one in inputs) and all(
        one is None or getattr(one, "ndim", 5) in (0, 3, 4) for one in inputs
    )


def _channels_last(value: Any) -> Any:
    """An operand with its channels as the last dimension."""
    if value is None or not value.ndim:
        return value
    return np.transpose(value if value.ndim == 4 else np.expand_dims(value, 0), (0, 2, 3, 1))


def _channels_first(value: Any) -> Any:
    return np.transpose(value, (0, 3, 1, 2)) if value.ndim == 4 else value


def _results(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _rounded(node: OnnxNode, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[Any, ...]:
    """The results of a node on widened elements, those that have the type of such an input rounded to it."""
    of_inputs, of_outputs = node.type_variables
    narrow = {kind: value.dtype for kind, value in zip(of_inputs, inputs, strict=False) if has_narrow(value)}
    return tuple(
        narrowed(value, narrow[kind]) if kind in narrow and value is not None else value
        for kind, value in zip(of_outputs, results, strict=False)
    )


def _materialized(value: Any) -> Any:
    """A value without symbolic ints; constants of one element become numbers, which compiled code contains."""
    if isinstance(value, list):
        return [materialized(one) for one in value]
    value = materialized(value)
    return value[()] if type(value) is Frozen and not value.ndim and not value.dtype.hasobject else value
