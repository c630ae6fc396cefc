"""Models as functions: their calls, symbolic sizes, constants, control flow, and what `explain` says."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx

import jitkernels.onnx
from jitkernels.errors import ArgumentError, ArgumentTypeError

pytestmark = needs_onnx


def made(nodes: Any, inputs: Any, outputs: Any, constants: Any = (), **options: Any) -> Any:
    """A model of nodes; inputs and outputs as names with shapes."""
    from onnx import TensorProto, helper, numpy_helper

    def values(listed: Any) -> list[Any]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in listed]

    tensors = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "test", values(inputs), values(outputs), tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], **options)


def perceptron(units: int = 5) -> Any:
    from onnx import helper

    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="first"),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"]),
    ]
    constants = [("w", rng.normal(size=(3, units)).astype(np.float32)), ("b", np.ones(units, np.float32))]
    return made(nodes, [("x", ["batch", 3])], [("y", ["batch", units])], constants)


def test_one_function_for_all_sizes_of_a_batch(tmp_path: Path) -> None:
    import onnx
    from onnx.reference import ReferenceEvaluator

    proto = perceptron()
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    reference = ReferenceEvaluator(proto)
    for source in (path, str(path), proto.SerializeToString(), proto):
        model = jitkernels.onnx.load(source)
        for batch in (2, 3, 17, 1, 0):
            x = np.random.default_rng(batch).normal(size=(batch, 3)).astype(np.float32)
            np.testing.assert_allclose(model(x), reference.run(None, {"x": x})[0], rtol=1e-5)
            np.testing.assert_array_equal(model.run(["y"], {"x": x})[0], model(x))
    assert [str(one) for one in model.get_inputs()] == ["x: tensor(float) [batch, 3]"]
    assert [one.name for one in model.get_outputs()] == ["y"]
    assert "y = Softmax(r)" in model.source()


def test_explain_lists_levels_and_kernels() -> None:
    model = jitkernels.onnx.load(perceptron())
    explained = model.explain(np.ones((4, 3), np.float32))
    assert explained.levels == {"compiled": 3}
    assert "kernel" in str(explained)


def test_arguments_that_do_not_fit() -> None:
    model = jitkernels.onnx.load(perceptron())
    with pytest.raises(ArgumentTypeError, match="x: expected an array of float32, got one of float64"):
        model(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match=r"x: expected the shape \['batch', 3\], got \[2, 4\]"):
        model(np.ones((2, 4), np.float32))
    with pytest.raises(ArgumentError, match="expected 1 inputs"):
        model()
    with pytest.raises(ArgumentError, match="missing: x"):
        model.run(None, {})
    with pytest.raises(ArgumentError, match="unknown: z"):
        model.run(None, {"x": np.ones((2, 3), np.float32), "z": 1})
    with pytest.raises(ArgumentError, match="names of outputs"):
        model.run(["z"], {"x": np.ones((2, 3), np.float32)})


def test_later_calls_go_straight_to_compiled_code() -> None:
    """They accept no more than the first: other types and shapes are refused, lists are converted."""
    model = jitkernels.onnx.load(perceptron())
    x = np.ones((2, 3), np.float32)
    first = model(x)
    assert model._direct is not None
    assert np.array_equal(model(x), first)
    assert model(np.ones((5, 3), np.float32)).shape == (5, 5)
    with pytest.raises(ArgumentTypeError, match="x: expected an array of float32, got one of float64"):
        model(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="x: expected the shape"):
        model(np.ones((2, 4), np.float32))
    with pytest.raises(ArgumentError, match="expected 1 inputs"):
        model(x, x)
    assert np.array_equal(model(x), first)


def test_calls_from_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = jitkernels.onnx.load(perceptron())
    inputs = [np.random.default_rng(i).normal(size=(1 + i % 5, 3)).astype(np.float32) for i in range(200)]
    expected = [model(x) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(model, inputs))
        fresh = list(pool.map(jitkernels.onnx.load(perceptron()), inputs))
    assert all(map(np.array_equal, found, expected))
    for one, other in zip(fresh, expected, strict=True):  # code for another size that came first may round otherwise
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_sizes_stay_symbolic() -> None:
    """A reshape to what the shape of an input says compiles once."""
    from onnx import helper

    nodes = [
        helper.make_node("Shape", ["x"], ["s"], start=0, end=1),
        helper.make_node("Concat", ["s", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    proto = made(nodes, [("x", ["n", 2, 3])], [("y", ["n", 6])], [("rest", np.array([-1]))])
    model = jitkernels.onnx.load(proto)
    for n in (5, 7, 9, 4):  # no extent of the others: extents that are equal in the first call share a symbol
        x = np.random.default_rng(n).normal(size=(n, 2, 3)).astype(np.float32)
        assert np.array_equal(model(x), x.reshape(n, 6))
    (plan,) = model.plans
    (stage,) = plan.stages
    assert stage.level == "compiled"
    (function,) = stage.functions
    assert function.stats().compiles == 1


def test_small_models_run_compiled_code() -> None:
    """A result that Python builds, as a view, costs less than the nodes by NumPy."""
    from onnx import helper

    filters = np.random.default_rng(0).normal(size=(6, 1, 5, 5)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[2] * 4)]
    model = jitkernels.onnx.load(made(nodes, [("x", [1, 1, 8, 8])], [("y", [1, 6, 8, 8])], [("w", filters)]))
    for _ in range(3):
        model(np.ones((1, 1, 8, 8), np.float32))
    (function,) = model.plans[0].stages[0].functions
    assert "takes less time" not in str(function.stats())


def test_elements_that_decide_shapes_divide_a_model() -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("NonZero", ["square"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"]),
        helper.make_node("GatherND", ["square", "rows"], ["found"]),
        helper.make_node("Neg", ["found"], ["y"]),
    ]
    model = jitkernels.onnx.load(made(nodes, [("x", ["n"])], [("y", ["m"])]))
    assert model(np.array([0, 2, 0, 3], np.float32)).tolist() == [-4, -9]
    assert model(np.array([1, 0, 0], np.float32)).tolist() == [-1]
    assert model.explain(np.ones(3, np.float32)).levels == {"compiled": 4, "NumPy": 1}


def test_an_initializer_may_be_passed() -> None:
    from onnx import helper

    proto = made(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [("x", [2]), ("w", [2])],
        [("y", [2])],
        [("w", np.array([1, 2], np.float32))],
    )
    model = jitkernels.onnx.load(proto)
    x = np.zeros(2, np.float32)
    assert model(x).tolist() == [1, 2]
    assert model.run(None, {"x": x, "w": x})[0].tolist() == [0, 0]
    assert model(x).tolist() == [1, 2]


def test_operators_that_nobody_has() -> None:
    from onnx import helper

    from jitkernels.errors import ModelError

    nodes = [helper.make_node("Frobnicate", ["x"], ["y"], domain="nowhere", name="it")]
    proto = made(nodes, [("x", [2])], [("y", [2])])
    model = jitkernels.onnx.load(proto)
    with pytest.raises(ModelError, match=r"nowhere\.Frobnicate 'it'"):
        model(np.zeros(2, np.float32))


def test_functions_of_a_model_are_inlined() -> None:
    from onnx import helper

    body = [helper.make_node("Mul", ["a", "a"], ["square"]), helper.make_node("Add", ["square", "a"], ["b"])]
    opsets = [helper.make_opsetid("", 21)]
    function = helper.make_function("mine", "Polynomial", ["a"], ["b"], body, opsets)
    nodes = [
        helper.make_node("Polynomial", ["x"], ["h"], domain="mine"),
        helper.make_node("Polynomial", ["h"], ["y"], domain="mine"),
    ]
    proto = made(nodes, [("x", [2])], [("y", [2])], functions=[function])
    proto.opset_import.append(helper.make_opsetid("mine", 1))
    model = jitkernels.onnx.load(proto)
    assert model(np.array([1, 2], np.float32)).tolist() == [6, 42]
    assert model.explain(np.ones(2, np.float32)).levels == {"compiled": 4}


def test_the_command_line_runs_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    from jitkernels.tools.cli import main

    onnx.save(perceptron(), tmp_path / "model.onnx")
    x = np.ones((2, 3), np.float32)
    np.save(tmp_path / "x.npy", x)
    words = ["run", str(tmp_path / "model.onnx"), "--input", str(tmp_path / "x.npy")]
    for more, code in ((["--output", str(tmp_path / "y.npy")], 0), (["--input", str(tmp_path / "x.npy")], 2)):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        assert ended.value.code == code
    shown = capsys.readouterr()
    assert "y: tensor(float) [batch, 5]" in shown.out
    assert "expected 1 inputs (x), got 2" in shown.err.replace("\n", " ")
    assert np.array_equal(np.load(tmp_path / "y.npy"), jitkernels.onnx.load(perceptron())(x))


def branches() -> Any:
    """``y = x + w`` where the sum of x is positive, and ``y = x * x`` elsewhere."""
    from onnx import TensorProto, helper, numpy_helper

    out = [helper.make_tensor_value_info("r", TensorProto.FLOAT, [3])]
    w = numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w")
    first = helper.make_graph([helper.make_node("Add", ["x", "w"], ["r"])], "then", [], out, [w])
    second = helper.make_graph([helper.make_node("Mul", ["x", "x"], ["r"])], "else", [], out)
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["is_positive"]),
        helper.make_node("If", ["is_positive"], ["y"], then_branch=first, else_branch=second),
    ]
    return made(nodes, [("x", [3])], [("y", [3])], [("zero", np.array(0, np.float32))])


def test_a_branch_that_elements_decide_is_compiled() -> None:
    model = jitkernels.onnx.load(branches())
    assert model(np.array([1, 1, 1], np.float32)).tolist() == [2, 3, 4]
    assert model(np.array([-1, -2, 1], np.float32)).tolist() == [1, 4, 1]
    assert model.explain(np.ones(3, np.float32)).levels == {"compiled": 3}


@pytest.mark.parametrize("rounds", [0, 3, 100])
def test_loops_by_constant_trip_counts(rounds: int) -> None:
    """Short ones are part of the compiled code, others run in Python, their bodies compiled."""
    from onnx import TensorProto, helper

    def value(name: str, kind: int, shape: Any) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["again"]),
            helper.make_node("Add", ["state", "x"], ["next"]),
            helper.make_node("Neg", ["next"], ["row"]),
        ],
        "body",
        [
            value("i", TensorProto.INT64, []),
            value("going", TensorProto.BOOL, []),
            value("state", TensorProto.FLOAT, [2]),
        ],
        [
            value("again", TensorProto.BOOL, []),
            value("next", TensorProto.FLOAT, [2]),
            value("row", TensorProto.FLOAT, [2]),
        ],
    )
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["last", "rows"], body=body)]
    proto = made(nodes, [("x", [2])], [("last", [2]), ("rows", [None, 2])], [("count", np.array(rounds))])
    model = jitkernels.onnx.load(proto)
    x = np.array([1, 2], np.float32)
    last, rows = model(x)
    assert last.tolist() == [1 + rounds, 2 + 2 * rounds]
    assert rows.shape == (rounds, 2)
    assert np.array_equal(rows, -np.outer(np.arange(2, rounds + 2), x))
    assert set(model.explain(x).levels) == {"NumPy" if rounds > 64 else "compiled"}
