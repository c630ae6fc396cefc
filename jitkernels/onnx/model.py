"""`Model`: an ONNX model as a compiled function, with the methods of onnxruntime's ``InferenceSession``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from jitkernels.errors import ArgumentError, ArgumentTypeError, shown
from jitkernels.onnx.executor import Executor, Plan
from jitkernels.onnx.model_graph import OnnxNode, ValueType
from jitkernels.onnx.model_source import reduced
from jitkernels.onnx.read_model import ReadModel, read_model
from jitkernels.onnx.stages import COMPILED_LEVEL, CompiledStage, plain

if TYPE_CHECKING:
    from jitkernels.onnx.model_drawing import ModelDrawing
    from jitkernels.onnx.model_stats import ModelStats


@dataclass(frozen=True)
class NodeReport:
    """How one node runs: its level, and the reason where it is not compiled."""

    node: str
    level: str
    reason: str = ""


@dataclass(frozen=True)
class ModelExplanation:
    """How the nodes of a model run, and what its compiled functions are made of."""

    name: str
    nodes: tuple[NodeReport, ...]
    functions: tuple[Any, ...]

    @property
    def levels(self) -> dict[str, int]:
        """The number of nodes of each level."""
        return dict(Counter(one.level for one in self.nodes))

    def levels_text(self) -> str:
        """The number of nodes of each level, and why nodes are not compiled."""
        counts = ", ".join(f"{count} {level}" for level, count in self.levels.items())
        lines = [f"{self.name}: {len(self.nodes)} nodes ({counts})"]
        return "\n".join([*lines, *(f"  {one.node}: {one.level}, {one.reason}" for one in self.nodes if one.reason)])

    def __str__(self) -> str:
        return "\n".join([self.levels_text(), *map(str, self.functions)])


def loaded(source: Any, *, profile: bool = False, winograd: bool = False) -> "Model":
    """The model of a path, bytes, or a ``ModelProto``. Raises ModelError, and ArgumentTypeError for another option."""
    if type(winograd) is not bool:
        raise ArgumentTypeError(f"winograd: expected a bool, got {shown(winograd)}")
    return Model(read_model(source), profile=profile, winograd=winograd)


class Model:
    """A model as a function of its inputs, which returns its output, or a tuple of its outputs."""

    def __init__(self, read: ReadModel, *, profile: bool = False, winograd: bool = False) -> None:
        self.graph = read.graph
        self._options = {"profile": profile, "winograd": winograd}
        self._executor = Executor(read.graph, is_profiled=profile, winograd=winograd)
        self._executors: dict[frozenset[str], Executor] = {}
        self._direct: Any = None
        self._read = read
        self._input_names, self._output_names = read.graph.input_names, list(read.graph.output_names)

    def __repr__(self) -> str:
        return f"<onnx model {self.graph.name!r}: {', '.join(map(str, self.get_inputs()))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the model that it was loaded from, which is compiled again."""
        load = partial(loaded, **self._options) if any(self._options.values()) else loaded
        return reduced(load, self._read.source, has_external_data=self._read.has_external_data)

    @property
    def plans(self) -> list[Plan]:
        """How calls of each kind of arguments so far run their nodes."""
        return self._executor.plans

    def get_inputs(self) -> tuple[ValueType, ...]:
        """The names, types and shapes of the inputs that a call passes."""
        return tuple(one for one in self.graph.inputs if one.name not in self.graph.constants)

    def get_outputs(self) -> tuple[ValueType, ...]:
        """The names, types and shapes of the outputs."""
        return self.graph.outputs

    def __call__(self, *inputs: Any) -> Any:
        """The outputs for these inputs, in the order of `get_inputs`."""
        direct = self._direct
        if direct is not None:
            try:
                results = direct(inputs)
            except Exception:  # noqa: BLE001  # the checks of the other path say what is wrong
                return self._checked_call(inputs)
            return results[0] if len(results) == 1 else results
        return self._checked_call(inputs)

    def _checked_call(self, inputs: tuple[Any, ...]) -> Any:
        """The same, arguments converted and checked."""
        names = self.graph.input_names
        if len(inputs) != len(names):
            raise ArgumentError(f"expected {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        results = self._run(dict(zip(names, inputs, strict=True)))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, output_names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs of these names, of all for None; `feeds`: the inputs by name."""
        direct, names = self._direct, self.graph.output_names
        is_whole = output_names is None or output_names == self._output_names
        if direct is not None and is_whole and len(feeds) == len(self._input_names):
            with suppress(Exception):  # the checks below say what is wrong
                return list(direct(tuple([feeds[name] for name in self._input_names])))
        unknown = [name for name in output_names or () if name not in names]
        if unknown:
            raise ArgumentError(f"expected names of outputs ({', '.join(names)}), got {', '.join(unknown)}")
        known = dict(zip(names, self._run(feeds), strict=True))
        return [known[name] for name in output_names or names]

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        values = self._checked(feeds)
        given = frozenset(values).intersection(self.graph.constants)
        if given:
            return self._overridden(given).run(values)
        results = self._executor.run(values)
        self._direct = self._executor.direct_function(self.graph.input_names)
        return results

    def _overridden(self, names: frozenset[str]) -> Executor:
        """The executor for calls that pass inputs which have initializers."""
        if names not in self._executors:
            constants = self.graph.constants.copy()
            for name in names:
                del constants[name]
            executor = self._executor
            self._executors[names] = Executor(
                replace(self.graph, constants=constants), is_profiled=executor.is_profiled, winograd=executor.winograd
            )
        return self._executors[names]

    def _checked(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs as arrays. Raises ArgumentError for missing and unknown ones, and for other shapes or types."""
        defaults = {one.name for one in self.graph.inputs if one.name in self.graph.constants}
        unknown = [name for name in feeds if name not in self.graph.input_names and name not in defaults]
        missing = [name for name in self.graph.input_names if name not in feeds]
        if unknown or missing:
            text = f"missing: {', '.join(missing)}" if missing else f"unknown: {', '.join(unknown)}"
            raise ArgumentError(f"expected the inputs {', '.join(self.graph.input_names)}; {text}")
        return {one.name: checked_input(one, feeds[one.name]) for one in self.graph.inputs if one.name in feeds}

    def explain(self, *inputs: Any) -> ModelExplanation:
        """How each node runs for such inputs: runs the model once. Without inputs: as it is planned."""
        if inputs:
            self(*inputs)
        values = dict(zip(self.graph.input_names, map(plain, inputs), strict=False))
        plan = self._executor.plan_for(values)
        reports = tuple(self._report(plan, node) for node in self.graph.nodes)
        functions = tuple(
            function.explain(tuple(values[name] for name in stage.inputs))
            for stage in plan.stages
            if isinstance(stage, CompiledStage) and len(plan.stages) == 1 and inputs
            for function in [stage.function(values)]
        )
        return ModelExplanation(self.name, reports, functions)

    def _report(self, plan: Plan, node: OnnxNode) -> NodeReport:
        if node in self._executor.fused:
            return NodeReport(str(node), COMPILED_LEVEL)
        level, reason = plan.level(node), plan.reason(node)
        if level not in (COMPILED_LEVEL, "constant") and not reason:
            reason = "its operator runs there"
        return NodeReport(str(node), level, reason)

    def drawing(self, *inputs: Any) -> "ModelDrawing":
        """Draw the kernels of a call with these inputs, with nodes and, after ``load(model, profile=True)``, times.

        Runs the model once. Nodes that run by themselves are boxes between the drawings of compiled code.
        """
        from jitkernels.onnx.model_drawing import ModelDrawing

        self(*inputs)
        values = dict(zip(self.graph.input_names, map(plain, inputs), strict=True))
        return ModelDrawing(self.name, self._executor.plan_for(values).stages, is_timed=self._executor.is_profiled)

    def stats(self) -> "ModelStats":
        """Time, arithmetic rate and memory of each layer in calls of the latest kind of arguments so far.

        Times need ``load(model, profile=True)``; shares of the peak measure the rate of multiply-adds, a tenth of a
        second for each dtype.
        """
        from jitkernels.onnx.model_stats import stats_of

        plans = [plan for executor in (self._executor, *self._executors.values()) for plan in executor.plans]
        return stats_of(self.name, plans[-1].stages if plans else (), is_timed=self._executor.is_profiled)

    @property
    def name(self) -> str:
        """The name of the model's graph."""
        return self.graph.name or "model"

    def source(self) -> str:
        """The nodes as statements, in the order in which they run."""
        lines = []
        for node in self.graph.nodes:
            attributes = [f"{name}={shown(value)}" for name, value in node.attributes.items()]
            arguments = ", ".join([*(name or "None" for name in node.inputs), *attributes])
            lines.append(f"{', '.join(name or '_' for name in node.outputs)} = {node.op}({arguments})")
        return "\n".join(lines)


def checked_input(declared: ValueType, value: Any) -> Any:
    """An input as an array of the declared type, rank and fixed sizes."""
    if not declared.type.startswith("tensor("):
        return plain(value) if value is not None else None
    array = np.asarray(value)
    is_string = declared.dtype == "object" and array.dtype.kind in "OUST"
    if array.dtype.name != declared.dtype and declared.dtype and not is_string:
        raise ArgumentTypeError(f"{declared.name}: expected an array of {declared.dtype}, got one of {array.dtype}")
    shape = declared.shape
    if shape is not None and (
        len(shape) != array.ndim
        or any(type(one) is int and one != size for one, size in zip(shape, array.shape, strict=True))
    ):
        raise ArgumentError(f"{declared.name}: expected the shape {list(shape)}, got {list(array.shape)}")
    return array.astype(object) if is_string and array.dtype != object else array
