"""The pattern rewriter: a pass is a list of named local rules; one sweep applies the rules of several passes."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph, Node, rebuild_roots
from jitkernels.compiler.ir.regions import regions_of, with_regions
from jitkernels.core.frozen_dataclass import frozen_dataclass

MAX_REWRITES_PER_NODE = 32
"""How often one sweep rewrites one node at most: rules of users may form a cycle."""


@dataclass
class MatchContext:
    """What a rule may use beside the node: whether floats may be reassociated, and how many uses nodes have.

    Counts are of the graph before the sweep: they decide profitability, never correctness.
    """

    fast_math: bool
    counts: dict[Node, int] = field(default_factory=dict)

    def has_one_use(self, node: Node) -> bool:
        return self.counts.get(node, 1) <= 1


LocalRule = Callable[[Node, MatchContext], Node | None]
"""The replacement of a node, or None if the rule does not apply. It keeps dtype and shape."""


@frozen_dataclass
class RegisteredRule:
    """A rule, the operations that it matches (none for all), and whether it needs ``fast_math``."""

    apply: LocalRule
    operations: tuple[str, ...]
    fast_math: bool


class RewritePass:
    """A pass made of local rules. Removing a rule from `rules` disables it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[str, RegisteredRule] = {}

    def rule(self, *operations: str, fast_math: bool = False) -> Callable[[LocalRule], LocalRule]:
        """Register a rule under the name of its function."""

        def register(function: LocalRule) -> LocalRule:
            self.rules[function.__name__] = RegisteredRule(function, operations, fast_math)
            return function

        return register

    def entries(self, config: JitConfig) -> list[RegisteredRule]:
        """The rules that a configuration enables."""
        return [entry for entry in self.rules.values() if config.fast_math or not entry.fast_math]


class GraphPass:
    """A pass over the whole graph, as a function of the graph, the configuration and its rules by name."""

    def __init__(
        self, name: str, run: Callable[[Graph, JitConfig, dict[str, Any]], Graph], *rules: Callable[..., Any]
    ) -> None:
        self.name, self._run = name, run
        self.rules: dict[str, Any] = {rule.__name__: rule for rule in rules}

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        return self._run(graph, config, self.rules)


class CombinedSweep:
    """Several passes of local rules in one sweep: rewrite each node until no rule of any pass applies."""

    name = "rewrites"

    def __init__(self, passes: Sequence[RewritePass]) -> None:
        self.passes = passes

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        """The graph with every node rewritten; the same graph if no rule applies."""
        entries = [entry for rewrite_pass in self.passes for entry in rewrite_pass.entries(config)]
        unrestricted = [entry.apply for entry in entries if not entry.operations]
        table: dict[str, list[LocalRule]] = {}
        for entry in entries:
            for operation in entry.operations:
                table.setdefault(operation, []).append(entry.apply)

        def rewrite(node: Node, context: MatchContext) -> Node:
            for _ in range(MAX_REWRITES_PER_NODE):
                for apply in (*table.get(node.operation, ()), *unrestricted):
                    replacement = apply(node, context)
                    if replacement is not None and replacement is not node:
                        node = replacement
                        break
                else:
                    break
            return node

        return rewrite_nodes(graph, rewrite, config.fast_math)


class RegionSweep:
    """The rules of a pass for some operations of numbers inside of loops and branches, which other passes leave alone.

    There the rules see one number at a time: what depends on the form of integers, as the analysis of indices does, is
    not rewritten.
    """

    name = "rewrites in regions"

    def __init__(self, rewrite_pass: RewritePass, operations: frozenset[str]) -> None:
        self.rewrite_pass, self.operations = rewrite_pass, operations

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        """The graph with the regions of its nodes rewritten; the same graph if no rule applies."""
        rules = [
            (entry.apply, operation)
            for entry in self.rewrite_pass.entries(config)
            for operation in self.operations.intersection(entry.operations)
        ]

        def rewritten(region: Graph) -> Graph:
            return rewrite_nodes(region, rewrite, config.fast_math)

        def rewrite(node: Node, context: MatchContext) -> Node:
            for apply, operation in () if node.ndim else rules:
                replacement = apply(node, context) if node.operation == operation else None
                if replacement is not None:
                    return replacement
            return inside(node)

        def inside(node: Node) -> Node:
            return with_regions(node, node.inputs, rewritten) if regions_of(node) else node

        if not any(map(regions_of, graph)):
            return graph
        return rewrite_nodes(graph, lambda node, _: inside(node), config.fast_math)


def rewrite_nodes(graph: Graph, rewrite: Callable[[Node, MatchContext], Node], fast_math: bool) -> Graph:
    """The graph rebuilt node by node, operands first; the same graph if nothing changes."""
    nodes = list(graph)
    counts = use_counts(graph, nodes)
    context = MatchContext(fast_math)
    new: dict[Node, Node] = {}
    for node in nodes:
        result = rewrite(node.replace_inputs([new[operand] for operand in node.inputs]), context)
        new[node] = result
        context.counts[result] = context.counts.get(result, 0) + counts[node]
    return rebuild_if_changed(graph, new)


def use_counts(graph: Graph, nodes: list[Node]) -> dict[Node, int]:
    """The number of users of each node, each counted once; being a root is a use."""
    counts = dict.fromkeys(nodes, 0)
    for node in nodes:
        for operand in set(node.inputs):
            counts[operand] += 1
    for root in graph.roots:
        counts[root] += 1
    return counts


def rebuild_if_changed(graph: Graph, new: dict[Node, Node]) -> Graph:
    """The graph with its nodes replaced by those of `new`; the same graph if each is replaced by itself."""
    if all(map(operator.is_, new.keys(), new.values())):
        return graph
    return rebuild_roots(graph, new.__getitem__)
