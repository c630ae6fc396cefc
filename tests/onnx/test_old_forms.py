"""Operators whose arguments were attributes in older opsets run as compiled code, as their newer forms do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from test_models import made

import jitkernels.onnx

pytestmark = needs_onnx
X = np.random.default_rng(0).normal(size=(2, 4, 6, 1)).astype(np.float32)
FORMS: dict[str, tuple[int, dict[str, Any], Callable[[Any], Any]]] = {
    "Reshape": (4, {"shape": [2, -1, 3]}, lambda x: x.reshape(2, -1, 3)),
    "Squeeze": (11, {"axes": [3]}, lambda x: x[..., 0]),
    "Unsqueeze": (11, {"axes": [1]}, lambda x: x[:, None]),
    "Clip": (6, {"min": -0.5, "max": 0.25}, lambda x: x.clip(-0.5, 0.25)),
    "Slice": (9, {"starts": [1], "ends": [3], "axes": [1]}, lambda x: x[:, 1:3]),
    "Split": (11, {"split": [1, 3], "axis": 1}, lambda x: x[:, :1]),
    "Pad": (10, {"pads": [0, 1, 0, 0, 0, 2, 0, 0]}, lambda x: np.pad(x, ((0, 0), (1, 2), (0, 0), (0, 0)))),
    "ReduceSum": (11, {"axes": [1], "keepdims": 0}, lambda x: x.sum(1)),
    "Upsample": (7, {"scales": [1.0, 1.0, 2.0, 1.0]}, lambda x: x.repeat(2, 2)),
}
"""The last opset of the form, its attributes, and the first result by NumPy."""


@pytest.mark.parametrize("op", FORMS)
def test_forms_with_attributes(op: str) -> None:
    from onnx import helper

    opset, attributes, function = FORMS[op]
    outputs = ["y", "z"] if op == "Split" else ["y"]
    proto = made(
        [helper.make_node(op, ["x"], outputs, **attributes)], [("x", X.shape)], [(name, None) for name in outputs]
    )
    proto.opset_import[0].version = opset
    model = jitkernels.onnx.load(proto)
    np.testing.assert_allclose(model.run(["y"], {"x": X})[0], function(X), rtol=1e-5, atol=1e-6)
    assert set(model.explain(X).levels) == {"compiled"}, str(model.explain(X))
