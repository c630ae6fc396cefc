"""Which code other processes run from the cache of models, and the reasons why they do not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from processes import finish, start
from test_model_cache import is_cached, right
from test_models import made
from test_weights import image, network

import jitkernels as jk
from jitkernels.onnx import model_cache
from jitkernels.onnx.model_source import ModelFile

pytestmark = needs_onnx


@pytest.fixture
def known(tmp_path: Path, model_folder: Path) -> Path:
    """The network as a file, whose code is in the cache."""
    path = tmp_path / "model.onnx"
    path.write_bytes(network().SerializeToString())
    right(path)
    return path


def kinds_of_code() -> dict[str, Any]:
    """Models whose code links to other code in each way that there is, or returns other than new arrays of C order."""
    from onnx import TensorProto, helper, numpy_helper

    def model(op: str, kind: int, shapes: Any, constants: Any = (), **attributes: Any) -> Any:
        """One node of this operator."""
        values = [helper.make_tensor_value_info(name, kind, shape) for name, shape in zip("ab", shapes, strict=False)]
        node = helper.make_node(op, attributes.pop("inputs", ["a", "b"]), ["y"], **attributes)
        kept = [numpy_helper.from_array(array, name) for name, array in constants]
        graph = helper.make_graph([node], "t", values, [helper.make_tensor_value_info("y", kind, None)], kept)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    filters = np.random.default_rng(0).normal(size=(4, 3, 3, 3)).astype(np.float32)
    lengths, sizes = [["n"], ["n"]], [["m", "k"], ["k", "n"]]
    return {
        "transposed result": model("Conv", TensorProto.FLOAT, [[1, 3, 8, 8]], [("b", filters)], pads=[1] * 4),
        "lazy functions": model("MatMul", TensorProto.FLOAT, sizes),
        "slow paths": model("Div", TensorProto.INT32, lengths),
        "slow paths of floats": model("Pow", TensorProto.FLOAT, lengths),
        "inputs in another order": model("Sub", TensorProto.FLOAT, lengths, inputs=["b", "a"]),
    }


KINDS = """
import glob, sys
import numpy as np
import jitkernels as jk
shapes = {"Conv": [(1, 3, 8, 8)], "MatMul": [(5, 6), (6, 7)]}
for path in sorted(glob.glob(PATHS)):
    op = path.rpartition("-")[2].partition(".")[0]
    kind = np.int32 if op == "Div" else np.float32
    arrays = [np.arange(1, 1 + np.prod(shape), dtype=kind).reshape(shape) for shape in shapes.get(op, [(19,), (19,)])]
    model = jk.onnx.load(path)
    print(op, model(*arrays).tobytes().hex(), sep="=")
    if op == "MatMul":  # which needs a function that the first process has not built
        x = np.random.default_rng(0).integers(-9, 9, (300, 300)).astype(np.float32)
        later = model
print("compiler" if "jitkernels.compiler" in sys.modules else "no compiler", "onnx" in sys.modules)
print(np.array_equal(later(x, x), x @ x), np.array_equal(later(x, x), x @ x))
"""


def test_kinds_of_code_that_another_process_runs(tmp_path: Path) -> None:
    for number, proto in enumerate(kinds_of_code().values()):
        proto.doc_string = str(tmp_path)
        op = proto.graph.node[0].op_type
        (tmp_path / f"{number}-{op}.onnx").write_bytes(proto.SerializeToString())
    code = KINDS.replace("PATHS", repr(str(tmp_path / "*.onnx")))
    first, second = finish(start(code)), finish(start(code))
    assert first.splitlines()[-2:] == ["compiler True", "True True"]
    assert second.splitlines()[-2:] == ["no compiler False", "True True"]
    assert first.splitlines()[:-2] == second.splitlines()[:-2]


def test_reasons_why_no_other_process_runs_it(tmp_path: Path, model_folder: Path) -> None:
    from onnx import helper

    def state(path: Any, *inputs: Any, **options: Any) -> str:
        model = jk.onnx.load(path, **options)
        explained = model.explain(*inputs)
        model_cache.wait_for_writers()
        assert f"code: {explained.cache}" in str(explained)
        return str(explained.cache)

    path, x = tmp_path / "m.onnx", image()
    path.write_bytes(network().SerializeToString())
    assert state(path) == "not looked at yet: the model was not called"
    assert state(network(), x) == "not kept, as the model is no file"
    assert state(path, x, profile=True) == "not kept, as it counts times"
    with jk.use(implementation="refer"):
        assert state(path, x) == "not kept, as jk.use pins implementations"
    assert state(path, x) == "written to the cache"
    assert state(path, x) == "read from the cache"
    node = helper.make_node("NonZero", ["x"], ["y"])
    proto = made([node], [("x", [3])], [])
    proto.graph.output.append(helper.make_tensor_value_info("y", 7, None))
    path.write_bytes(proto.SerializeToString())
    assert "not one compiled function" in state(path, np.ones(3, np.float32))


def test_registered_implementations(known: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that registers one may choose it: code of processes without it is not used, nor its own kept."""
    from jitkernels.attrs.schema import registry

    assert is_cached(right(known))
    ours = dict(registry._implementations[jk.Conv2DPackedAttr])
    mine = SimpleNamespace(name="mine", function=None, reason_against=lambda _: "not here", is_reference=False)
    before = [path.stat().st_ino for path in model_folder.iterdir()]
    with monkeypatch.context() as patched:
        patched.setitem(registry._implementations, jk.Conv2DPackedAttr, {**ours, "mine": mine})
        model = right(known)
        assert not is_cached(model)
        assert "conv2d_packed that are not of this package" in str(model.explain(image()))
    assert [path.stat().st_ino for path in model_folder.iterdir()] == before
    assert is_cached(right(known))


def test_plugins_that_are_installed_later(known: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other-1.0.dist-info").mkdir()
    entry = "[jitkernels.kernels]\nother = jitkernels.errors\n"
    (tmp_path / "other-1.0.dist-info" / "entry_points.txt").write_text(entry)
    assert is_cached(right(known))
    with monkeypatch.context() as patched:
        patched.syspath_prepend(str(tmp_path))
        assert model_cache.find(ModelFile(known), winograd=False) is None
    assert is_cached(right(known))


@pytest.mark.parametrize("batch", [1, 2])
def test_models_that_end_in_a_convolution(tmp_path: Path, model_folder: Path, batch: int) -> None:
    """Their results have channels last in memory: arrays of their own, no views that Python would have to build."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    w = np.random.default_rng(0).normal(size=(5, 3, 3, 3)).astype(np.float32)
    proto = made([node], [("x", [batch, 3, 8, 9])], [("y", [batch, 5, 8, 9])], [("w", w)])
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    x = np.random.default_rng(1).normal(size=(batch, 3, 8, 9)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    for turn in range(2):
        model = jk.onnx.load(path)
        got = model(x)
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
        assert got.base is None
        assert is_cached(model) == (turn == 1)
        model_cache.wait_for_writers()


ENDS: dict[str, tuple[str, dict[str, Any], list[int]]] = {
    "Reshape": ("Reshape", {}, [2, 15]),
    "Flatten": ("Flatten", {}, [2, 15]),
    "Squeeze": ("Squeeze", {}, [2, 5, 3]),
    "Transpose": ("Transpose", {"perm": [0, 2, 3, 1]}, [2, 3, 1, 5]),
    "Softmax": ("Softmax", {"axis": 1}, [2, 5, 3, 1]),
    "Identity": ("Identity", {}, [2, 5, 3, 1]),
}
"""The last operator behind a convolution, with its attributes and the shape of its result."""


@pytest.mark.parametrize("end", ENDS)
def test_models_that_end_in_a_view(tmp_path: Path, model_folder: Path, end: str) -> None:
    """Many networks end in a reshape: their code is kept, whatever their last operator is in NumPy."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    operator, attributes, shape = ENDS[end]
    constants = {"Reshape": np.array([2, -1]), "Squeeze": np.array([3])}
    weights = [("w", np.random.default_rng(0).normal(size=(5, 3, 3, 3)).astype(np.float32))]
    weights += [("constant", constants[end])] if end in constants else []
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node(operator, ["c", *(["constant"] if end in constants else [])], ["y"], **attributes),
    ]
    proto = made(nodes, [("x", [2, 3, 5, 3])], [("y", shape)], weights)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    x = np.random.default_rng(1).normal(size=(2, 3, 5, 3)).astype(np.float32)
    (wanted,) = ReferenceEvaluator(proto).run(None, {"x": x})
    for turn in range(2):
        model = jk.onnx.load(path)
        np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-4)
        assert is_cached(model) == (turn == 1)
        model_cache.wait_for_writers()
