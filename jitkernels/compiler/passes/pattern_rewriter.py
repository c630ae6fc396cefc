"""How rules that look at a node and what it reads are applied: a pass is a list of named rules, all share one sweep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jitkernels.graph.config import JitConfig
from jitkernels.graph.ir import Graph, Node, remade_of
from jitkernels.records import record

TRIES = 32
"""How often one node is rewritten in one sweep: rules of users may go in circles."""


@dataclass
class Facts:
    """What rules may know beside the node: whether floats may be reordered, and how often nodes are read.

    Counts are of the graph before the sweep: they tell what is worth it, never what is right.
    """

    fast_math: bool
    counts: dict[int, int] = field(default_factory=dict)

    def is_read_once(self, node: Node) -> bool:
        return self.counts.get(id(node), 1) <= 1


LocalRule = Callable[[Node, Facts], Node | None]
"""What a node may be replaced by, None if the rule does not apply. Dtype and shape stay as they are."""


@record
class Entry:
    """A rule, the operations it looks at (none for all), and whether it needs ``fast_math``."""

    apply: LocalRule
    operations: tuple[str, ...]
    fast_math: bool


class Rewriting:
    """A pass made of local rules. Rules that are taken out of `rules` are not applied."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[str, Entry] = {}

    def rule(self, *operations: str, fast_math: bool = False) -> Callable[[LocalRule], LocalRule]:
        """Registers a rule under its function's name."""

        def registered(function: LocalRule) -> LocalRule:
            self.rules[function.__name__] = Entry(function, operations, fast_math)
            return function

        return registered

    def entries(self, config: JitConfig) -> list[Entry]:
        """The rules that a configuration has."""
        return [entry for entry in self.rules.values() if config.fast_math or not entry.fast_math]


class Together:
    """Passes of local rules in one sweep: a node is rewritten until no rule of any of them applies."""

    name = "rewrites"

    def __init__(self, passes: Sequence[Rewriting]) -> None:
        self.passes = passes

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        """The graph with every node rewritten; the same graph if no rule applies."""
        entries = [entry for one in self.passes for entry in one.entries(config)]
        everywhere = [entry.apply for entry in entries if not entry.operations]
        table: dict[str, list[LocalRule]] = {}
        for entry in entries:
            for operation in entry.operations:
                table.setdefault(operation, []).append(entry.apply)

        def rewritten(node: Node, facts: Facts) -> Node:
            for _ in range(TRIES):
                for apply in (*table.get(node.operation, ()), *everywhere):
                    found = apply(node, facts)
                    if found is not None and found is not node:
                        node = found
                        break
                else:
                    break
            return node

        return swept(graph, rewritten, config.fast_math)


def swept(graph: Graph, rewritten: Callable[[Node, Facts], Node], fast_math: bool) -> Graph:
    """The graph made again node by node, inputs first; the same graph if nothing changes."""
    nodes = list(graph)
    before = counts_of(graph, nodes)
    facts = Facts(fast_math)
    new: dict[int, Node] = {}
    changed = False
    for node in nodes:
        inputs = tuple(new[id(one)] for one in node.inputs)
        kept = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
        result = rewritten(node if kept else node.with_inputs(inputs), facts)
        changed = changed or result is not node
        new[id(node)] = result
        facts.counts[id(result)] = facts.counts.get(id(result), 0) + before[id(node)]
    return rebuilt(graph, new) if changed else graph


def counts_of(graph: Graph, nodes: list[Node]) -> dict[int, int]:
    """By the id of each node how many nodes read it, each counted once; being a root counts too."""
    counts = {id(node): 0 for node in nodes}
    for node in nodes:
        for one in set(map(id, node.inputs)):
            counts[one] += 1
    for root in graph.roots:
        counts[id(root)] += 1
    return counts


def rebuilt(graph: Graph, new: dict[int, Node]) -> Graph:
    """The graph of which nodes are replaced."""
    return remade_of(graph, lambda node: new[id(node)])
