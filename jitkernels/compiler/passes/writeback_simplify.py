"""Simplification of the writes to arguments at the end of a call.

1. A write of an argument's own value to it is dropped.
"""

from typing import Any

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.passes.pattern_rewriter import GraphPass


def rule_1_argument_written_to_itself(graph: Graph) -> Graph:
    writes = tuple((target, value) for target, value in graph.writes if target is not value)
    if len(writes) == len(graph.writes):
        return graph
    return graph.remade(graph.outputs, writes, graph.checks)


def _run(graph: Graph, _config: JitConfig, rules: dict[str, Any]) -> Graph:
    for rule in rules.values():
        graph = rule(graph)
    return graph


writeback_simplify_pass = GraphPass("writeback_simplify", _run, rule_1_argument_written_to_itself)
