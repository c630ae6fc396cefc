"""Plan and run a graph: stages of compiled nodes, and nodes that cannot be compiled between them.

Each node begins as compiled. Where compiling its stage fails at it, the stages are planned again, with this node in
NumPy, and where its operator cannot serve it at all, by the reference implementation.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np

from jitkernels.core.fork_locks import build_lock
from jitkernels.onnx.fuse_convolutions import fuse_convolutions, mark_channels_last
from jitkernels.onnx.fuse_quantized_convolutions import fuse_quantized_convolutions
from jitkernels.onnx.fuse_quantized_weights import fuse_quantized_weights
from jitkernels.onnx.model_graph import OnnxGraph, OnnxNode, needed
from jitkernels.onnx.run_node import run_node
from jitkernels.onnx.stages import COMPILED_LEVEL, NUMPY_LEVEL, REFERENCE_LEVEL, CompiledStage, ReplanError, SingleStage

DATA_KIND, SIZE_KIND = "data", "size"
"""Kinds of values while stages are planned: arrays, and sizes of arrays, which are known in a trace."""
SHAPES = ("Shape", "Size")
"""Operators whose results are sizes, whatever their inputs are."""
MAX_PLANS = 64
"""Most kinds of arguments for which plans are kept."""


class Plan:
    """The stages of a graph, and how each node runs: its level, and why it is not compiled."""

    def __init__(self, stages: Sequence[Any], levels: Mapping[OnnxNode, tuple[str, str]]) -> None:
        self.stages, self.levels = tuple(stages), levels

    def level(self, node: OnnxNode) -> str:
        """How a node runs."""
        return next((stage.level for stage in self.stages if node in stage.nodes), "constant")

    @property
    def levels_of_nodes(self) -> list[str]:
        """The levels of all nodes that run."""
        return [stage.level for stage in self.stages for _ in stage.nodes]

    def reason(self, node: OnnxNode) -> str:
        """Why a node is not compiled."""
        return self.levels.get(node, ("", ""))[1]


class Executor:
    """Runs a graph on arrays.

    `is_profiled`: its compiled code counts the time of each kernel. `winograd`: as in `JitConfig`.
    """

    def __init__(self, graph: OnnxGraph, *, is_profiled: bool = False, winograd: bool = False) -> None:
        self.graph, self.is_profiled, self.winograd = graph, is_profiled, winograd
        self.inputs = tuple(dict.fromkeys((*graph.input_names, *graph.captured)))
        self.constants = graph.constants.copy()
        self._nodes: tuple[OnnxNode, ...] | None = None
        self._plans: dict[Any, Plan] = {}
        self.fused: set[OnnxNode] = set()
        for node in graph.nodes:
            for subgraph in node.subgraphs.values():
                subgraph.executor = Executor(subgraph, is_profiled=is_profiled, winograd=winograd)

    @property
    def nodes(self) -> tuple[OnnxNode, ...]:
        """The nodes that outputs depend on, without those that depend on constants alone, which are computed here."""
        if self._nodes is None:
            with build_lock:
                nodes = needed(self.graph.nodes, self.graph.output_names)
                nodes, self.fused = fuse_quantized_convolutions(nodes, self.graph.output_names, self.constants)
                nodes, gone = fuse_quantized_weights(nodes, self.constants)
                self.fused |= gone
                nodes = self._folded(needed(nodes, self.graph.output_names))
                nodes, gone = fuse_convolutions(nodes, self.graph.output_names, self.constants)
                self.fused |= gone
                nodes = needed(nodes, self.graph.output_names)
                mark_channels_last(nodes)
                self._nodes = nodes
        return self._nodes

    def _folded(self, nodes: Sequence[OnnxNode]) -> tuple[OnnxNode, ...]:
        rest = []
        for node in nodes:
            operator = node.operator
            is_constant = (
                operator is not None and not operator.host and all(one in self.constants for one in node.reads)
            )
            if not (is_constant and self._folds(node)):
                rest.append(node)
        return tuple(rest)

    def _folds(self, node: OnnxNode) -> bool:
        """Compute a node of constants; False where that is left to a run."""
        values = {name: self.constants[name] for name in node.reads}
        try:
            with np.errstate(all="ignore"):
                run_node(node, values)
        except Exception:  # noqa: BLE001  # a run tries the other levels
            return False
        for name in node.outputs:
            value = values.get(name)
            if name:
                self.constants[name] = value
        return True

    @property
    def plans(self) -> list[Plan]:
        """The plans made so far, one for each kind of arguments."""
        return [*self._plans.values()]

    def plan_for(self, values: Mapping[str, Any]) -> Plan:
        """The plan for arrays of these types and numbers of dimensions."""
        key = tuple(_pattern(values.get(name)) for name in self.inputs)
        plan = self._plans.get(key)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[key] = Plan(self._stages({}), {})
        return plan

    def run(self, values: Mapping[str, Any]) -> list[Any]:
        """The outputs for arrays by name. A call that fails changes no plan: the next one may be right."""
        known = plan = self.plan_for(values)
        while True:
            try:
                results = self._run(plan, dict(values))
            except ReplanError as change:
                levels = {**plan.levels, **change.nodes}
                plan = Plan(self._stages(levels), levels)
                continue
            if plan is not known:
                self._plans[tuple(_pattern(values.get(name)) for name in self.inputs)] = plan
            return results

    def direct_function(self, names: Sequence[str]) -> Any:
        """The compiled function of a tuple of inputs, where it is the whole graph for all arguments; else None."""
        plans = [*self._plans.values()]
        if len(plans) != 1 or len(plans[0].stages) != 1:
            return None
        (stage,) = plans[0].stages
        return stage.direct_function(names, self.graph.output_names) if isinstance(stage, CompiledStage) else None

    def _run(self, plan: Plan, values: MutableMapping[str, Any]) -> list[Any]:
        for stage in plan.stages:
            stage.run(values)
        constants = self.constants
        results = [values[name] if name in values else constants[name] for name in self.graph.output_names]
        return [
            _owned(one) if name in constants else one
            for one, name in zip(results, self.graph.output_names, strict=True)
        ]

    def _stages(self, levels: Mapping[OnnxNode, tuple[str, str]]) -> list[Any]:
        return _Planner(self, levels).stages()


class _Planner:
    """Divides the nodes of a graph into stages."""

    def __init__(self, executor: Executor, levels: Mapping[OnnxNode, tuple[str, str]]) -> None:
        self._executor, self._levels = executor, levels
        self._kinds: dict[str, str] = {}
        self._open: list[OnnxNode] = []
        self._made: set[str] = set()
        self._statics: dict[str, None] = {}
        self._groups: list[tuple[str, list[OnnxNode], tuple[str, ...]]] = []

    def stages(self) -> list[Any]:
        for node in self._executor.nodes:
            level = self._level(node)
            if level == COMPILED_LEVEL:
                self._take(node)
            else:
                self._close()
                self._groups.append((level, [node], ()))
        self._close()
        wanted = set(self._executor.graph.output_names)
        stages: list[Any] = []
        for level, nodes, statics in reversed(self._groups):
            stages.append(self._stage(level, nodes, statics, wanted))
            wanted.update(name for node in nodes for name in node.reads)
        return stages[::-1]

    def _level(self, node: OnnxNode) -> str:
        if node in self._levels:
            return self._levels[node][0]
        operator = node.operator
        return REFERENCE_LEVEL if operator is None else NUMPY_LEVEL if operator.host else COMPILED_LEVEL

    def _take(self, node: OnnxNode) -> None:
        """Add a node to the open stage; close that first where its results decide a shape of the node."""
        operator = node.operator
        assert operator is not None, "compiled"
        constants = self._executor.constants
        static = [node.inputs[i] for i in operator.static if i < len(node.inputs) and node.inputs[i]]
        data = [name for name in static if name not in constants and self._kinds.get(name) != SIZE_KIND]
        if any(name in self._made for name in data):
            self._close()
            data = [name for name in static if name not in constants and self._kinds.get(name) != SIZE_KIND]
        self._statics.update(dict.fromkeys(data))
        is_size = node.op in SHAPES or (
            operator.sizes and all(name in constants or self._kinds.get(name) == SIZE_KIND for name in node.reads)
        )
        self._kinds.update(dict.fromkeys(node.outputs, SIZE_KIND if is_size else DATA_KIND))
        self._made.update(node.outputs)
        self._open.append(node)

    def _close(self) -> None:
        if self._open:
            self._groups.append((COMPILED_LEVEL, self._open, tuple(self._statics)))
        self._open, self._made, self._kinds, self._statics = [], set(), {}, {}

    def _stage(self, level: str, nodes: list[OnnxNode], statics: tuple[str, ...], wanted: set[str]) -> Any:
        constants = self._executor.constants
        reads = dict.fromkeys(name for node in nodes for name in node.reads)
        if level != COMPILED_LEVEL:
            return SingleStage(nodes[0], level, constants)
        made = [name for node in nodes for name in node.outputs if name]
        inputs = [name for name in reads if name not in constants and name not in set(made) and name not in statics]
        known = {name: place for place, name in enumerate(self._executor.inputs)}
        inputs.sort(key=lambda name: known.get(name, len(known)))  # as callers pass them
        stage = CompiledStage(nodes, inputs, statics, [name for name in made if name in wanted], constants)
        fixed = {one.name for one in self._executor.graph.inputs if one.is_fixed}
        stage.is_profiled, stage.winograd = self._executor.is_profiled, self._executor.winograd
        stage.is_exact = fixed.issuperset(inputs)
        stage.declared = {one.name: one for one in self._executor.graph.inputs}
        return stage


def _pattern(value: Any) -> Any:
    """What of an argument decides how nodes can run."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim
    return tuple(map(_pattern, value)) if isinstance(value, list) else type(value)


def _owned(value: Any) -> Any:
    return [_owned(one) for one in value] if isinstance(value, list) else np.array(value)
