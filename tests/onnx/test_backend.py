"""The interface by which ONNX's own runner tests a backend, with the models that the package has on disk."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_cases import needs_onnx

from jitkernels.errors import ModelError

pytestmark = needs_onnx
UNSUPPORTED = {"test_gradient_of_add", "test_gradient_of_add_and_mul"}
"""Tests of the operator Gradient, which neither we nor onnx.reference have."""


def value_of(file: Path, kind: Any) -> Any:
    """The array, sequence or optional value in a file."""
    import onnx
    from onnx import numpy_helper

    readers: dict[str, tuple[Any, Any]] = {
        "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
        "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
        "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
    }
    proto_type, convert = readers[kind.WhichOneof("value")]
    proto = proto_type()
    proto.ParseFromString(file.read_bytes())
    return convert(proto)


def run_all(kind: str) -> dict[str, str]:
    """The failures of the tests of a folder."""
    import onnx
    from onnx.backend.test.loader import load_model_tests
    from onnx.backend.test.runner import Runner

    from jitkernels.onnx.backend import JitKernelsBackend

    failures = {}
    for case in load_model_tests(kind=kind):
        if case.name in UNSUPPORTED:
            continue
        assert case.model_dir is not None
        model = onnx.load(Path(case.model_dir) / "model.onnx")
        prepared = JitKernelsBackend.prepare(model)
        for folder in sorted(Path(case.model_dir).glob("test_data_set*")):
            count, results = len([*folder.glob("input_*")]), len([*folder.glob("output_*")])
            inputs = [value_of(folder / f"input_{i}.pb", model.graph.input[i].type) for i in range(count)]
            expected = [value_of(folder / f"output_{i}.pb", model.graph.output[i].type) for i in range(results)]
            try:
                Runner.assert_similar_outputs(expected, prepared.run(inputs), case.rtol, case.atol)
            except (AssertionError, ModelError) as error:
                failures[case.name] = str(error)
    return failures


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator"])
def test_models_on_disk(kind: str) -> None:
    assert run_all(kind) == {}


@pytest.mark.full
def test_layers_of_torch() -> None:
    assert run_all("pytorch-converted") == {}


def test_the_interface() -> None:
    from onnx import TensorProto, helper

    from jitkernels.onnx import backend

    node = helper.make_node("Neg", ["x"], ["y"])
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:]))
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")
    (result,) = backend.run_model(model, [np.ones(2, np.float32)])
    assert result.tolist() == [-1, -1]
    with pytest.raises(ModelError, match="the device CUDA"):
        backend.prepare(model, "CUDA")
