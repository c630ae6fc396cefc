"""A small model with nodes of two levels, and a call of the command line, for tests of tools."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jitkernels.tools.cli import main

IMAGE = (2, 3, 9, 9)


def network() -> Any:
    """A convolution of 4 filters of 3x3, a maximum, then rows of ones that NonZero finds by itself."""
    from onnx import TensorProto, helper, numpy_helper

    w = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], name="first", pads=[1, 1, 1, 1]),
        helper.make_node("Exp", ["h"], ["e"], name="second"),
        helper.make_node("NonZero", ["e"], ["y"], name="third"),
    ]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *IMAGE[1:]])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, None)],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def saved(folder: Path) -> str:
    import onnx

    onnx.save(network(), folder / "model.onnx")
    return str(folder / "model.onnx")


def command(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    printed = capsys.readouterr()
    assert (ended.value.code or 0) == code, printed.err
    return printed.err if code else printed.out
