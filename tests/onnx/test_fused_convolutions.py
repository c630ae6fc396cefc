"""What follows a convolution is folded into it where that is right, and values are those of the reference."""

from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from test_models import made

import jitkernels.onnx

pytestmark = needs_onnx
RNG = np.random.default_rng(0)
CONSTANTS = [
    ("w", RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)),
    ("b", RNG.normal(size=4).astype(np.float32)),
    *((name, RNG.uniform(0.5, 2, 4).astype(np.float32)) for name in ("scale", "bias", "mean", "variance")),
    ("channels", RNG.normal(size=(4, 1, 1)).astype(np.float32)),
    ("batched", RNG.normal(size=(1, 4, 1, 1)).astype(np.float32)),
    ("small", RNG.normal(size=(4, 3, 1, 1)).astype(np.float32)),
    ("four", np.array([0, 2, 1, 0])),
    ("first", np.array([0])),
    ("columns", RNG.normal(size=(1, 1, 4)).astype(np.float32)),
    ("one", np.full((1, 1, 1), 2.5, np.float32)),
]
FOLLOWERS = {
    "relu": [("Relu", ["c"], ["y"])],
    "normalized": [("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["y"])],
    "normalized, relu": [
        ("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["n"]),
        ("Relu", ["n"], ["y"]),
    ],
    "residual, relu": [("Add", ["other", "c"], ["s"]), ("Relu", ["s"], ["y"])],
    "residual by Sum": [("Sum", ["c", "other"], ["y"])],
    "normalized residual": [
        ("BatchNormalization", ["c", "scale", "bias", "mean", "variance"], ["n"]),
        ("Add", ["n", "other"], ["y"]),
    ],
    "factor and term": [("Mul", ["channels", "c"], ["m"]), ("Add", ["m", "batched"], ["y"])],
}
KEPT = {
    "relu, factor": [("Relu", ["c"], ["r"]), ("Mul", ["r", "channels"], ["y"])],
    "factor of columns": [("Mul", ["c", "columns"], ["y"])],
    "factor of all": [("Mul", ["c", "one"], ["y"])],
    "square": [("Mul", ["c", "c"], ["y"])],
    "residual of itself": [("Relu", ["c"], ["r"]), ("Add", ["r", "c"], ["y"])],
    "residual of one channel": [("Add", ["c", "one channel"], ["s"]), ("Relu", ["s"], ["y"])],
    "two residuals by Sum": [("Sum", ["c", "other", "other"], ["y"])],
    "two residuals": [("Add", ["other", "c"], ["s"]), ("Add", ["s", "other"], ["y"])],
    "factor of a residual": [("Add", ["other", "c"], ["s"]), ("Mul", ["s", "channels"], ["y"])],
    "sum of two convolutions": [("Conv", ["x", "small"], ["d"]), ("Add", ["c", "d"], ["s"]), ("Relu", ["s"], ["y"])],
}
"""Chains that are folded in part, or not at all."""


def model(steps: Any, *, biased: bool, also: Any = ()) -> Any:
    from onnx import helper

    inputs = ["x", "w", "b"] if biased else ["x", "w"]
    nodes = [helper.make_node("Conv", inputs, ["c"], pads=[1, 1, 1, 1])]
    nodes += [helper.make_node("Gather", ["x", "four"], ["other"], axis=1)]  # computed behind the convolution
    nodes += [helper.make_node("Gather", ["x", "first"], ["one channel"], axis=1)]
    nodes += [helper.make_node(*step) for step in steps]
    return made(nodes, [("x", [2, 3, 5, 4])], [("y", None), *((name, None) for name in also)], CONSTANTS)


def agrees(proto: Any) -> Any:
    """Compare with the reference on one input, and return how the model runs."""
    from onnx.reference import ReferenceEvaluator

    x = RNG.normal(size=(2, 3, 5, 4)).astype(np.float32)
    expected = ReferenceEvaluator(proto).run(None, {"x": x})
    compiled = jitkernels.onnx.load(proto)
    for got, right in zip(compiled.run(None, {"x": x}), expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)
    return compiled.explain(x)


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("chain", [*FOLLOWERS, *KEPT])
def test_chains_agree_with_the_reference(chain: str, biased: bool) -> None:
    agrees(model((FOLLOWERS | KEPT)[chain], biased=biased))


@pytest.mark.parametrize("chain", FOLLOWERS)
def test_followers_become_part_of_the_convolution(chain: str) -> None:
    explained = str(agrees(model(FOLLOWERS[chain], biased=True)).functions[0])
    assert explained.count("conv2d") == 1, explained
    assert not any(word in explained for word in ("multiply", "add", "maximum")), explained


def test_one_of_two_convolutions_takes_the_other_as_its_residual() -> None:
    explained = str(agrees(model(KEPT["sum of two convolutions"], biased=True)).functions[0])
    assert explained.count("conv2d") == 2, explained
    assert not any(word in explained for word in ("add", "maximum")), explained


def test_results_that_others_read_stay() -> None:
    agrees(model(FOLLOWERS["normalized"], biased=True, also=["c"]))
    agrees(model(FOLLOWERS["normalized, relu"], biased=True, also=["n"]))
