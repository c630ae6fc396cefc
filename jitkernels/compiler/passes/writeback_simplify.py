"""What is written to arguments when all is computed.

1. What an argument holds is not written to it again.
"""

from collections.abc import Callable

from jitkernels.graph.config import JitConfig
from jitkernels.graph.ir import Graph


class Writes:
    """The pass."""

    name = "writes"

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


writes = Writes()
