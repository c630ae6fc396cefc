"""Simplification of the writes to arguments at the end of a call.

1. A write of an argument's own value to it is dropped.
"""

from collections.abc import Callable

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph


class WritebackSimplify:
    """The pass."""

    name = "writeback_simplify"

    def __init__(self) -> None:
        self.rules: dict[str, Callable[[Graph], Graph]] = {
            "rule_1_argument_written_to_itself": rule_1_argument_written_to_itself
        }

    def __call__(self, graph: Graph, _config: JitConfig) -> Graph:
        for rule in self.rules.values():
            graph = rule(graph)
        return graph


def rule_1_argument_written_to_itself(graph: Graph) -> Graph:
    writes = tuple((target, value) for target, value in graph.writes if target is not value)
    if len(writes) == len(graph.writes):
        return graph
    return graph.remade(graph.outputs, writes, graph.checks)


writeback_simplify_pass = WritebackSimplify()
