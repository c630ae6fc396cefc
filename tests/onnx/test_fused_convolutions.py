"""What follows a convolution is folded into it where that is right, and values are those of the reference."""

import pickle
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from test_models import made

import jitkernels.onnx
from jitkernels.errors import ArgumentTypeError, ModelError

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
    ("five", RNG.normal(size=(1, 1, 4, 1, 1)).astype(np.float32)),
    ("y (bias)", RNG.normal(size=(4, 1, 1)).astype(np.float32)),
    ("y (filters)", RNG.normal(size=(4, 1, 1)).astype(np.float32)),
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
    "factor of more dimensions": [("Mul", ["c", "five"], ["y"])],
    "names of folded constants": [
        ("Mul", ["c", "channels"], ["y"]),
        ("Mul", ["y (filters)", "y (bias)"], ["m"]),
        ("Add", ["m", "other"], ["z"]),
    ],
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


def test_names_of_folded_constants_are_not_those_of_the_model() -> None:
    agrees(model(KEPT["names of folded constants"], biased=True, also=["z"]))


def test_terms_along_an_axis_of_old_opsets() -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Add", ["c", "r"], ["y"], broadcast=1, axis=1),
    ]
    filters = np.ones((2, 2, 1, 1), np.float32)
    proto = made(nodes, [("x", [1, 2, 3, 2]), ("r", [2])], [("y", None)], [("w", filters)])
    proto.opset_import[0].version = 6
    y = jitkernels.onnx.load(proto)(np.ones((1, 2, 3, 2), np.float32), np.array([10, 20], np.float32))
    np.testing.assert_array_equal(y, np.broadcast_to(np.array([12, 22]).reshape(2, 1, 1), (1, 2, 3, 2)))


@pytest.mark.parametrize("name", ["scale", "b"])
def test_constants_that_do_not_fit_a_convolution(name: str) -> None:
    proto = model(FOLLOWERS["normalized"], biased=True)
    (tensor,) = [one for one in proto.graph.initializer if one.name == name]
    tensor.dims[0], tensor.raw_data = 3, tensor.raw_data[:12]
    with pytest.raises(ModelError, match=r"Conv|BatchNormalization"):
        jitkernels.onnx.load(proto)(np.ones((2, 3, 5, 4), np.float32))


def test_results_that_others_read_stay() -> None:
    agrees(model(FOLLOWERS["normalized"], biased=True, also=["c"]))
    agrees(model(FOLLOWERS["normalized, relu"], biased=True, also=["n"]))


SHAPES = {
    "shuffle": ([2, 2, 2, 5, 4], [0, 2, 1, 3, 4], [2, 4, 5, 4]),
    "shuffle of -1": ([0, 2, -1, 5, 4], [0, 2, 1, 3, 4], [0, -1, 5, 4]),
    "rows for columns": ([2, 4, 4, 5], [0, 1, 3, 2], [2, 4, 5, 4]),
    "images for channels": ([4, 2, 5, 4], [1, 0, 2, 3], [2, 4, 5, 4]),
    "three dimensions between": ([2, 4, 20], [0, 2, 1], [2, 4, 5, 4]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reshapes_between_convolutions(shape: str) -> None:
    """A shuffle of channels is a single copy, and other reshapes are those of the reference."""
    from onnx import helper

    first, perm, last = SHAPES[shape]
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Reshape", ["c", "first"], ["f"]),
        helper.make_node("Transpose", ["f"], ["t"], perm=perm),
        helper.make_node("Reshape", ["t", "last"], ["l"]),
        helper.make_node("Conv", ["l", "v"], ["y"]),
    ]
    weights = ("v", RNG.normal(size=(3, 4, 2, 2)).astype(np.float32))
    shapes = [(name, np.array(shape)) for name, shape in (("first", first), ("last", last))]
    used = [one for one in CONSTANTS if one[0] in ("w", "b")]
    explained = str(agrees(made(nodes, [("x", [2, 3, 5, 4])], [("y", None)], [*used, weights, *shapes])).functions[0])
    if "shuffle" in shape:
        assert explained.count("loop nest: copy") == 2, explained  # of the input, and of the shuffle


def test_winograd_where_a_model_is_loaded_so() -> None:
    """Bias, residual and Relu are folded into it; without the setting nothing changes."""
    from onnx import helper

    random = np.random.default_rng(0)
    constants = {"w": random.normal(size=(40, 24, 3, 3)), "b": random.normal(size=40)}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "r"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    arrays = {name: array.astype(np.float32) for name, array in constants.items()}
    proto = made(nodes, [("x", [1, 24, 18, 21]), ("r", [1, 40, 18, 21])], [("y", None)], [*arrays.items()])
    x = random.normal(size=(1, 24, 18, 21)).astype(np.float32)
    r = random.normal(size=(1, 40, 18, 21)).astype(np.float32)
    plain, fast = jitkernels.onnx.load(proto), jitkernels.onnx.load(proto, winograd=True)
    np.testing.assert_allclose(fast(x, r), plain(x, r), rtol=1e-4, atol=1e-4)
    with pytest.raises(ArgumentTypeError, match="winograd: expected a bool, got 1"):
        jitkernels.onnx.load(proto, winograd=1)  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(fast))
    for loaded, name in ((plain, "jk.conv2d_packed"), (fast, "jk.conv2d_winograd"), (again, "jk.conv2d_winograd")):
        text = str(loaded.explain(x, r))
        assert text.count("jk.conv2d") == text.count(name) == 1, text
