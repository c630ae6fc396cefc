"""Nodes that no operator of ours serves: the reference implementation of ONNX computes them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jitkernels.errors import ModelError, WorkspaceError
from jitkernels.onnx.model_graph import OnnxNode


class ReferenceNode:
    """One node under ``onnx.reference.ReferenceEvaluator``."""

    def __init__(self, node: OnnxNode) -> None:
        self._node = node
        self._evaluator: Any = None

    def run(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs of the node by name. Raises ModelError with what the reference says."""
        node = self._node
        outputs = [name for name in node.outputs if name]
        try:
            with np.errstate(all="ignore"):
                results = self._made().run(outputs, dict(values))
        except MemoryError as error:
            raise WorkspaceError(f"{node}: {error}") from error
        except Exception as error:  # the reference raises exceptions of all types
            raise ModelError(f"{node}: {type(error).__name__}: {error}") from error
        return {name: _array(result) for name, result in zip(outputs, results, strict=True)}

    def _made(self) -> Any:
        if self._evaluator is None:
            import onnx
            from onnx.reference import ReferenceEvaluator

            node = self._node
            assert node.proto is not None, "nodes that contain those behind them are never at this level"
            inputs = [onnx.helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(node.reads)]
            outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in node.outputs if name]
            graph = onnx.helper.make_graph([node.proto], node.op, inputs, outputs)
            self._evaluator = ReferenceEvaluator(graph, opsets={**node.opsets, node.domain: node.opset})
        return self._evaluator


def _array(value: Any) -> Any:
    if isinstance(value, list):
        return [_array(one) for one in value]
    return value if value is None else np.asarray(value)
