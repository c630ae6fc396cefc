"""The interface ``onnx.backend.base.Backend``, by which ONNX's own tests run models: `prepare`, `run_model`."""

from typing import Any

from onnx.backend.base import Backend, BackendRep

from jitkernels.errors import ModelError
from jitkernels.onnx import load
from jitkernels.onnx.model import Model


class PreparedModel(BackendRep):  # type: ignore[misc]  # typed only where onnx is installed
    """A model that `prepare` made ready."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs for inputs in their order."""
        names = list(self.model.graph.input_names)
        if len(inputs) != len(names):  # inputs with initializers are passed, too
            names = [one.name for one in self.model.graph.inputs]
        return tuple(self.model.run(None, dict(zip(names, inputs, strict=False))))


class JitKernelsBackend(Backend):  # type: ignore[misc]
    """Models on the CPU by compiled functions."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **_: Any) -> PreparedModel:
        """A model made ready to run. Raises ModelError for one that is not valid, or for another device."""
        if not cls.supports_device(device):
            raise ModelError(f"the device {device}: expected CPU")
        return PreparedModel(load(model))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on a device: on the CPU."""
        return device == "CPU"


prepare = JitKernelsBackend.prepare
run_model = JitKernelsBackend.run_model
supports_device = JitKernelsBackend.supports_device
