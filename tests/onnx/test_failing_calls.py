"""A call that fails leaves a model as it was: the next one is compiled, and gives what it gave before."""

from typing import Any

import numpy as np
import onnx_cases
import pytest

import jitkernels as jk
from jitkernels.errors import JitKernelsError

pytestmark = onnx_cases.needs_onnx


def network(operator: str = "Conv", **attributes: Any) -> Any:
    """A layer of any extents, and the mean of each channel."""
    from onnx import TensorProto, helper, numpy_helper

    weights = np.random.default_rng(0).standard_normal((17, 3, 3, 3)).astype(np.float32)
    inputs = ["x", "w"] if operator == "Conv" else ["x"]
    nodes = [
        helper.make_node(operator, inputs, ["z"], kernel_shape=[3, 3], strides=[2, 2], **attributes),
        helper.make_node("Relu", ["z"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["y"]),
    ]
    images = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])
    means = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    kept = [numpy_helper.from_array(weights, "w")] if operator == "Conv" else []
    graph = helper.make_graph(nodes, "network", [images], [means], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("operator", ["Conv", "MaxPool", "AveragePool"])
@pytest.mark.parametrize("comes_first", [False, True])
def test_images_smaller_than_the_window(operator: str, comes_first: bool) -> None:
    model, right = jk.onnx.load(network(operator)), np.random.default_rng(1).standard_normal((1, 3, 9, 8))
    x = right.astype(np.float32)
    before = None if comes_first else model(x)
    for shape in ((1, 3, 2, 2), (1, 3, 9, 2), (4, 3, 1, 9)):
        with pytest.raises(JitKernelsError):
            model(np.zeros(shape, np.float32))
    after = model(x)
    assert before is None or after.tobytes() == before.tobytes()
    assert after.tobytes() == jk.onnx.load(network(operator))(x).tobytes()
    assert onnx_cases.level_of(model) == "compiled"
