"""The pattern rewriter: a pass is a list of named local rules; one sweep applies the rules of several passes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph, Node, rebuild_roots
from jitkernels.core.frozen_dataclass import record

MAX_REWRITES_PER_NODE = 32
"""How often one sweep rewrites one node at most: rules of users may form a cycle."""


@dataclass
class MatchContext:
    """What a rule may use beside the node: whether floats may be reassociated, and how many uses nodes have.

    Counts are of the graph before the sweep: they decide profitability, never correctness.
    """

    fast_math: bool
    counts: dict[int, int] = field(default_factory=dict)

    def has_one_use(self, node: Node) -> bool:
        return self.counts.get(id(node), 1) <= 1


LocalRule = Callable[[Node, MatchContext], Node | None]
"""The replacement of a node, or None if the rule does not apply. It keeps dtype and shape."""


@record
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


def rewrite_nodes(graph: Graph, rewrite: Callable[[Node, MatchContext], Node], fast_math: bool) -> Graph:
    """The graph rebuilt node by node, operands first; the same graph if nothing changes."""
    nodes = list(graph)
    counts = use_counts(graph, nodes)
    context = MatchContext(fast_math)
    new: dict[int, Node] = {}
    changed = False
    for node in nodes:
        inputs = tuple(new[id(operand)] for operand in node.inputs)
        is_unchanged = all(new_operand is operand for new_operand, operand in zip(inputs, node.inputs, strict=True))
        result = rewrite(node if is_unchanged else node.with_inputs(inputs), context)
        changed = changed or result is not node
        new[id(node)] = result
        context.counts[id(result)] = context.counts.get(id(result), 0) + counts[id(node)]
    return rebuild_graph(graph, new) if changed else graph


def use_counts(graph: Graph, nodes: list[Node]) -> dict[int, int]:
    """By the id of each node the number of its users, each counted once; being a root is a use."""
    counts = {id(node): 0 for node in nodes}
    for node in nodes:
        for operand_id in set(map(id, node.inputs)):
            counts[operand_id] += 1
    for root in graph.roots:
        counts[id(root)] += 1
    return counts


def rebuild_graph(graph: Graph, new: dict[int, Node]) -> Graph:
    """The graph with its nodes replaced by those of `new`, by their ids."""
    return rebuild_roots(graph, lambda node: new[id(node)])
