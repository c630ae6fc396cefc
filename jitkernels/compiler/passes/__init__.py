"""The pass pipeline: run the graph passes of an optimization level until none of them changes the graph.

Level 0 runs no pass. Level 1 runs the local rewrites, which match one node and its operands: `constant_folding`,
`algebraic_simplify`, `select_simplify`, `fast_math`, `strength_reduction` and `user_rules`. Level 2 adds the passes
over the whole graph: `view_simplify`, `update_forwarding`, `reduction_simplify`, `cse`, `canonicalize_chains`,
`view_motion` and `writeback_simplify`; its code also contracts products and sums to FMA. Level 3 adds loop fusion,
which the scheduler does.

Inside of loops and branches powers of numbers become products; arrays there are graphs of their own later.

Dead code needs no pass: a graph holds only what its roots reach.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph
from jitkernels.compiler.passes.algebraic_simplify import algebraic_simplify_pass
from jitkernels.compiler.passes.canonicalize_chains import canonicalize_chains_pass
from jitkernels.compiler.passes.constant_folding import constant_folding_pass
from jitkernels.compiler.passes.cse import cse_pass
from jitkernels.compiler.passes.fast_math import fast_math_pass
from jitkernels.compiler.passes.pattern_rewriter import CombinedSweep, RegionSweep
from jitkernels.compiler.passes.reduction_simplify import reduction_simplify_pass
from jitkernels.compiler.passes.select_simplify import select_simplify_pass
from jitkernels.compiler.passes.strength_reduction import strength_reduction_pass
from jitkernels.compiler.passes.update_forwarding import update_forwarding_pass
from jitkernels.compiler.passes.user_rules import Rule, user_rules_pass
from jitkernels.compiler.passes.view_motion import view_motion_pass
from jitkernels.compiler.passes.view_simplify import view_simplify_pass
from jitkernels.compiler.passes.writeback_simplify import writeback_simplify_pass

__all__ = ["GLOBAL", "LOCAL", "Rule", "optimize"]

LOCAL: tuple[Any, ...] = (
    constant_folding_pass,
    algebraic_simplify_pass,
    select_simplify_pass,
    fast_math_pass,
    strength_reduction_pass,
    user_rules_pass,
)
GLOBAL: tuple[Any, ...] = (
    view_simplify_pass,
    update_forwarding_pass,
    reduction_simplify_pass,
    cse_pass,
    canonicalize_chains_pass,
    view_motion_pass,
    writeback_simplify_pass,
)
REGIONS = RegionSweep(strength_reduction_pass, frozenset({"power"}))
PASSES_BY_LEVEL: dict[int, tuple[Any, ...]] = {
    0: (),
    1: (CombinedSweep(LOCAL), REGIONS),
    2: (
        CombinedSweep(
            (*LOCAL[:-1], view_simplify_pass, update_forwarding_pass, reduction_simplify_pass, user_rules_pass)
        ),
        REGIONS,
        cse_pass,
        canonicalize_chains_pass,
        view_motion_pass,
        writeback_simplify_pass,
    ),
}
MAX_ITERATIONS = 8
"""Iterations of the pipeline at most. Graphs need about three; the last one changes nothing."""


def optimize(graph: Graph, config: JitConfig, after: Callable[[Any, Graph], None] | None = None) -> Graph:
    """Run the passes of `config.opt_level` on `graph`; call ``after(pass, graph)`` for each pass that changed it."""
    steps = PASSES_BY_LEVEL[min(abs(config.opt_level), 2)]
    for _ in range(MAX_ITERATIONS):
        before = graph
        for step in steps:
            changed = step(graph, config)
            if changed is not graph and after is not None:
                after(step, changed)
            graph = changed
        if graph is before:
            break
    return graph
