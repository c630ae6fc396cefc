"""Graphs that compute the same with less: the passes of a level, one after the other until none changes anything.

Level 0 has none. Level 1 has the rewrites that look at a node and what it reads: `folding`, `arithmetic`, `choices`,
`reassociation`, `strength` and `custom` rules. Level 2 has those of a whole graph as well: `views`, `updates`,
`reductions`, `common` subexpressions, `chains`, `sinking` and `writes`; its code also joins products and sums. Level 3
fuses, which is not done here. What nothing reads needs no pass: graphs are what their roots reach.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.graph.config import JitConfig
from jitkernels.graph.ir import Graph
from jitkernels.graph.passes.arithmetic import arithmetic
from jitkernels.graph.passes.chains import chains
from jitkernels.graph.passes.choices import choices
from jitkernels.graph.passes.common import common
from jitkernels.graph.passes.custom import Rule, custom
from jitkernels.graph.passes.folding import folding
from jitkernels.graph.passes.reassociation import reassociation
from jitkernels.graph.passes.reductions import reductions
from jitkernels.graph.passes.rewriting import Together
from jitkernels.graph.passes.sinking import sinking
from jitkernels.graph.passes.strength import strength
from jitkernels.graph.passes.updates import updates
from jitkernels.graph.passes.views import views
from jitkernels.graph.passes.writes import writes

__all__ = ["GLOBAL", "LOCAL", "Rule", "optimised"]

LOCAL: tuple[Any, ...] = (folding, arithmetic, choices, reassociation, strength, custom)
GLOBAL: tuple[Any, ...] = (views, updates, reductions, common, chains, sinking, writes)
STEPS: dict[int, tuple[Any, ...]] = {
    0: (),
    1: (Together(LOCAL),),
    2: (Together((*LOCAL[:-1], views, updates, reductions, custom)), common, chains, sinking, writes),
}
ROUNDS = 8
"""At most so often; three are what graphs need, the last of which changes nothing."""


def optimised(graph: Graph, config: JitConfig, after: Callable[[Any, Graph], None] | None = None) -> Graph:
    """The graph after the passes of the level. `after` is told each step that changed it, and the graph it made."""
    steps = STEPS[min(abs(config.opt_level), 2)]
    for _ in range(ROUNDS):
        before = graph
        for step in steps:
            changed = step(graph, config)
            if changed is not graph and after is not None:
                after(step, changed)
            graph = changed
        if graph is before:
            break
    return graph
