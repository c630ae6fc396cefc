"""How the nodes of a model run: compiled, in NumPy, or by the reference implementation, and why."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jitkernels.onnx.executor import Executor, Plan
from jitkernels.onnx.model_graph import OnnxNode
from jitkernels.onnx.stages import COMPILED_LEVEL, CompiledStage


@dataclass(frozen=True)
class NodeReport:
    """How one node runs: its level, and the reason where it is not compiled."""

    node: str
    level: str
    reason: str = ""


@dataclass(frozen=True)
class ModelExplanation:
    """How the nodes of a model run, and what its compiled functions are made of.

    `cache`: whether other processes find the code of its calls in the cache on disk, or why not.
    """

    name: str
    nodes: tuple[NodeReport, ...]
    functions: tuple[Any, ...]
    cache: str

    @property
    def levels(self) -> dict[str, int]:
        """The number of nodes of each level."""
        return dict(Counter(one.level for one in self.nodes))

    def levels_text(self) -> str:
        """The number of nodes of each level, and why nodes are not compiled."""
        counts = ", ".join(f"{count} {level}" for level, count in self.levels.items())
        lines = [f"{self.name}: {len(self.nodes)} nodes ({counts})"]
        lines += [f"  {one.node}: {one.level}, {one.reason}" for one in self.nodes if one.reason]
        return "\n".join([*lines, f"  code: {self.cache}"])

    def __str__(self) -> str:
        return "\n".join([self.levels_text(), *map(str, self.functions)])


def explanation(name: str, executor: Executor, values: Mapping[str, Any] | None, cache: str) -> ModelExplanation:
    """How a model runs for inputs that it has run for; for None as it is planned. `cache`: see `ModelExplanation`."""
    plan = executor.plan_for(values or {})
    functions = tuple(
        function.explain(tuple(values[name] for name in stage.inputs))
        for stage in plan.stages
        if isinstance(stage, CompiledStage) and len(plan.stages) == 1 and values
        for function in [stage.function(values)]
    )
    nodes = tuple(_report(executor, plan, node) for node in executor.graph.nodes)
    return ModelExplanation(name, nodes, functions, cache)


def _report(executor: Executor, plan: Plan, node: OnnxNode) -> NodeReport:
    if node in executor.fused:
        return NodeReport(str(node), COMPILED_LEVEL)
    level, reason = plan.level(node), plan.reason(node)
    if level not in (COMPILED_LEVEL, "constant") and not reason:
        reason = "its operator runs there"
    return NodeReport(str(node), level, reason)
