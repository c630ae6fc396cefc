"""Large initializers are read when code needs them, packed once, and not kept beside what was made of them."""

import gc
import os
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx
from test_models import made

import jitkernels.onnx
from jitkernels.errors import ModelError
from jitkernels.onnx.detach_tensors import MIN_DETACHED_BYTES, detach_tensors
from jitkernels.onnx.model_source import ModelFile

pytestmark = needs_onnx
CHANNELS, FILTERS = 16, 24


def network(name: str = "w") -> Any:
    """Convolution, batch normalization and product: scaled, packed and plain constants, all large."""
    from onnx import helper

    rng = np.random.default_rng(0)
    nodes = [
        helper.make_node("Conv", ["x", name], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "b", "mean", "var"], ["n"]),
        helper.make_node("GlobalAveragePool", ["n"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "m"], ["y"], transB=1),
    ]
    constants = [
        (name, rng.normal(size=(FILTERS, CHANNELS, 3, 3)).astype(np.float32)),
        *((one, rng.uniform(0.5, 1.5, FILTERS).astype(np.float32)) for one in ("scale", "b", "mean", "var")),
        ("m", rng.normal(size=(100, FILTERS)).astype(np.float32)),
    ]
    return made(nodes, [("x", [None, CHANNELS, None, None])], [("y", None)], constants)


def image(side: int = 9) -> Any:
    return np.random.default_rng(side).normal(size=(1, CHANNELS, side, side)).astype(np.float32)


def expected(x: Any) -> Any:
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(network()).run(None, {"x": x})[0]


def sources(folder: Path) -> list[Any]:
    """The network as a file, as bytes, and as a message; raw data lies at all offsets."""
    path = folder / "model.onnx"
    path.write_bytes(network().SerializeToString())
    return [path, network("weights").SerializeToString(), network("a longer name").SerializeToString(), network()]


def test_sources_give_equal_results(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        np.testing.assert_allclose(jitkernels.onnx.load(source)(image()), expected(image()), rtol=1e-4, atol=1e-4)


def test_only_data_of_large_initializers_is_detached() -> None:
    import onnx

    whole = network().SerializeToString()
    skeleton, spans = detach_tensors(memoryview(whole))
    assert sorted(spans) == [0, 5]
    assert len(skeleton) < len(whole) - sum(end - begin for begin, end in spans.values())
    proto = onnx.load_from_string(skeleton)
    for i, (begin, end) in spans.items():
        assert end - begin >= MIN_DETACHED_BYTES
        proto.graph.initializer[i].raw_data = whole[begin:end]
    assert proto == network()


@pytest.mark.parametrize("cut", [1, 100, 5000, 9000])
def test_bytes_that_are_no_model_are_left_to_the_parser(cut: int) -> None:
    whole = network().SerializeToString()
    assert detach_tensors(memoryview(whole)[:-cut]) == (whole[:-cut], {})
    twice = whole + whole  # two graphs, which a parser merges
    assert detach_tensors(memoryview(twice)) == (twice, {})


def test_detached_data_that_does_not_fit() -> None:
    proto = network()
    proto.graph.initializer[0].raw_data += b"\0\0\0\0"
    with pytest.raises(ModelError, match=r"'w' of shape \[24, 16, 3, 3\] has 13828 bytes"):
        jitkernels.onnx.load(proto)
    proto = network()
    proto.graph.initializer[0].data_location = 1
    with pytest.raises(ModelError, match="'w' has raw data beside"):
        jitkernels.onnx.load(proto)


def test_files_that_are_renamed_deleted_or_written(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(network().SerializeToString())
    model = jitkernels.onnx.load(path)
    path.rename(tmp_path / "other.onnx")
    path.write_bytes(b"another file")
    path.unlink()
    np.testing.assert_allclose(model(image()), expected(image()), rtol=1e-4, atol=1e-4)
    path = tmp_path / "other.onnx"
    path.write_bytes(network().SerializeToString())
    os.utime(path, ns=(0, 0))
    np.testing.assert_allclose(model(image()), expected(image()), rtol=1e-4, atol=1e-4)  # compiled already
    with pytest.raises(ModelError, match="the file was written to since the model was loaded"):
        model(image(8))


def test_external_data_that_is_written(tmp_path: Path) -> None:
    import onnx

    onnx.save(network(), tmp_path / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    model = jitkernels.onnx.load(tmp_path / "m.onnx")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model))(image()), model(image()))
    os.truncate(tmp_path / "m.bin", 0)
    with pytest.raises(ModelError, match=r"m\.bin: the file was written to since the model was loaded"):
        model(image(8))


def test_files_stay_open_for_lazy_data_alone(tmp_path: Path) -> None:
    from onnx import helper

    path = tmp_path / "model.onnx"
    path.write_bytes(made([helper.make_node("Relu", ["x"], ["y"])], [("x", [3])], [("y", [3])]).SerializeToString())
    folder = Path("/proc/self/fd")
    before = len([*folder.iterdir()]) if folder.exists() else 0
    models = [jitkernels.onnx.load(path) for _ in range(20)]
    after = len([*folder.iterdir()]) if folder.exists() else 0
    assert after <= before + 2
    assert (models[0](np.ones(3, np.float32)) == 1).all()


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="expected a file, got a folder"):
        jitkernels.onnx.load(tmp_path)
    with pytest.raises(ModelError, match="null byte"):
        jitkernels.onnx.load("a\0b")


def test_results_share_no_memory() -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Transpose", ["x"], ["transposed"]),
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Identity", ["y"], ["again"]),
        helper.make_node("Transpose", ["y"], ["transposed again"]),
    ]
    names = ["same", "transposed", "y", "again", "transposed again"]
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    results = jitkernels.onnx.load(made(nodes, [("x", [4, 5])], [(name, None) for name in names])).run(None, {"x": x})
    for i, one in enumerate(results):
        assert not np.shares_memory(one, x), names[i]
        assert not any(np.shares_memory(one, other) for other in results[:i]), names[i]
        assert one.flags.writeable
    np.testing.assert_array_equal(results[4], np.maximum(x, 0).T)


def test_models_are_pickled(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        model = jitkernels.onnx.load(source)
        model(image())
        content = pickle.dumps(model)
        (tmp_path / "model.onnx").unlink(missing_ok=True)
        np.testing.assert_array_equal(pickle.loads(content)(image()), model(image()))


def constants_of(model: Any) -> list[Any]:
    """The arrays that the compiled code of a model refers to."""
    (stage,) = model.plans[0].stages
    (function,) = stage.functions
    found = [one for candidates in function._specializations.values() for one in candidates]
    return [array for one in found for array in one.constants]


def test_packed_filters_are_shared_by_code_for_all_sizes(tmp_path: Path) -> None:
    for source in sources(tmp_path):
        model = jitkernels.onnx.load(source)
        for side in (9, 8, 7):
            np.testing.assert_allclose(model(image(side)), expected(image(side)), rtol=1e-4, atol=1e-4)
        packed = [array for array in constants_of(model) if array.ndim == 3]
        assert len(packed) == 3
        assert len({array.ctypes.data for array in packed}) == 1
        other = jitkernels.onnx.load(source)
        other(image())
        assert packed[0].ctypes.data not in {array.ctypes.data for array in constants_of(other)}


def test_filters_are_not_kept_beside_packed_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    read = ModelFile.read

    def noted(self: ModelFile, span: Any) -> Any:
        found.append(weakref.ref(data := read(self, span)))
        return data

    monkeypatch.setattr(ModelFile, "read", noted)
    monkeypatch.setattr("jitkernels.onnx.model_cache.find", lambda *_, **__: None)
    model = jitkernels.onnx.load(sources(tmp_path)[0])
    assert not found
    model(image())
    gc.collect()
    assert [one() for one in found] == [None, None]


def test_large_matrices_that_one_row_meets_are_read_in_place(tmp_path: Path) -> None:
    """As the file has them, transposed: neither a copy nor panels."""
    from onnx import helper

    weights = np.random.default_rng(0).normal(size=(1100, 1024)).astype(np.float32)
    node = helper.make_node("Gemm", ["x", "m"], ["y"], transB=1)
    path = tmp_path / "model.onnx"
    path.write_bytes(made([node], [("x", [1, 1024])], [("y", None)], [("m", weights)]).SerializeToString())
    model = jitkernels.onnx.load(path)
    x = np.random.default_rng(1).normal(size=(1, 1024)).astype(np.float32)
    np.testing.assert_allclose(model(x), x.astype(np.float64) @ weights.T, rtol=1e-3, atol=1e-3)
    assert [array.shape for array in constants_of(model)] == [weights.shape]
