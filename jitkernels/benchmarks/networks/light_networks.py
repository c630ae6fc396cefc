"""The ImageNet networks that the package onnx brings for its own tests, with random weights.

Their files hold no weights: each is a constant array of its shape, with which results are the same for any input.
"""

from pathlib import Path
from typing import Any

import numpy as np

NETWORKS = (
    "shufflenet", "squeezenet", "densenet121", "resnet50", "inception_v1", "inception_v2", "bvlc_alexnet", "zfnet512",
    "vgg19",
)  # fmt: skip


def folder() -> Path:
    """The folder of the models and of their expected outputs. Raises ImportError without the package onnx."""
    import onnx

    return Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def randomized(name: str) -> Any:
    """A network as an onnx.ModelProto, with random weights in place of constant ones and without its softmax.

    Weights keep the variance of what passes through a layer (He et al. 2015); softmax would hide small differences.
    """
    import onnx
    from onnx import numpy_helper

    proto = onnx.load(folder() / f"light_{name}.onnx")
    rng = np.random.default_rng(0)
    known = {one.name: numpy_helper.to_array(one) for one in proto.graph.initializer}
    uses = {name: (node.op_type, i) for node in proto.graph.node for i, name in enumerate(node.input)}
    kept = []
    for node in proto.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = [int(one) for one in known[node.input[0]]]
        op, place = uses[node.output[0]]
        if op == "Unsqueeze" or (op == "BatchNormalization" and place in (1, 4)):  # factors, and variances
            values = rng.uniform(0.8, 1.2, shape)
        else:
            values = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1, shape)
        proto.graph.initializer.append(numpy_helper.from_array(values.astype(np.float32), node.output[0]))
    if kept[-1].op_type == "Softmax":
        proto.graph.output[0].name = kept.pop().input[0]
        proto.graph.output[0].type.tensor_type.ClearField("shape")
    del proto.graph.node[:]
    proto.graph.node.extend(kept)
    return proto
