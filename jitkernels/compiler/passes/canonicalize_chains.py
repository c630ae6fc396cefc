"""Chains of sums and of products in one normal form: of integers, which wrap in any order, and of floats if asked to.

1. ``(a + b) - (c + d)`` is one chain ``a + b - c - d``, and so for products, where the parts are read by nothing else.
2. Terms of fewer dimensions come first, constants before all: what they come to is computed once, or folded.
3. Products come last, so that each is added by one fused multiplication and addition.
"""

from collections.abc import Callable

from jitkernels.graph.config import JitConfig
from jitkernels.graph.ir import Graph, Node
from jitkernels.graph.passes.matching import (
    common_shape,
    is_bool,
    is_float,
    is_integer,
    rank_of,
    shaped,
)
from jitkernels.graph.passes.rewriting import counts_of, rebuilt
from jitkernels.records import record

FAMILIES = {"add": "add", "subtract": "add", "multiply": "multiply"}


@record
class Term:
    """A part of a sum, or of a product, which has no negative ones."""

    node: Node
    is_negative: bool = False


Terms = list[Term]


class Normalisation:
    """The pass. Each rule but the first makes other terms of those of a chain."""

    name = "chains"

    def __init__(self) -> None:
        self.rules: dict[str, Callable[[str, Terms], Terms]] = {
            rule.__name__: rule for rule in (rule_1_flattened, rule_2_small_first, rule_3_products_last)
        }

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        nodes = list(graph)
        parts = self.parts(graph, nodes, config.fast_math)
        new: dict[int, Node] = {}
        changed = False
        for node in nodes:
            inputs = tuple(new[id(one)] for one in node.inputs)
            kept = all(one is other for one, other in zip(inputs, node.inputs, strict=True))
            result = node if kept else node.with_inputs(inputs)
            if _family(node, config.fast_math) and id(node) not in parts:
                result = self.normalised(node, parts, new) or result
            changed = changed or result is not node
            new[id(node)] = result
        return rebuilt(graph, new) if changed else graph

    def parts(self, graph: Graph, nodes: list[Node], fast_math: bool) -> set[int]:
        """The ids of nodes that are inner parts of chains."""
        if "rule_1_flattened" not in self.rules:
            return set()
        counts = counts_of(graph, nodes)
        found: set[int] = set()
        for node in nodes:
            family = _family(node, fast_math)
            for one in node.inputs if family else ():
                alone = counts[id(one)] == 1 and node.inputs.count(one) == 1
                if alone and one.dtype == node.dtype and _family(one, fast_math) == family:
                    found.add(id(one))
        return found

    def normalised(self, node: Node, parts: set[int], new: dict[int, Node]) -> Node | None:
        """The chain that ends at a node in its normal form; None if it is that."""
        before, is_straight = terms_of(node, parts, new)
        if len(before) < 3:
            return None
        operation = FAMILIES[node.operation]
        after = before
        for rule in self.rules.values():
            after = rule(operation, after)
        first = next((i for i, term in enumerate(after) if not term.is_negative), None)
        if first is None:
            return None
        after = [after[first], *after[:first], *after[first + 1 :]]
        return None if after == before and is_straight else chained(operation, after, node)


def _family(node: Node, fast_math: bool) -> str:
    """``add`` or ``multiply`` for nodes that may be reordered, else nothing."""
    family = FAMILIES.get(node.operation, "")
    return family if family and not is_bool(node) and (fast_math or not is_float(node)) else ""


def terms_of(node: Node, parts: set[int], new: dict[int, Node]) -> tuple[Terms, bool]:
    """The terms of a chain from left to right, and whether it is summed up from left to right."""
    terms: Terms = []
    is_straight = True
    stack = [Term(node)]
    while stack:
        term = stack.pop()
        if term.node is not node and id(term.node) not in parts:
            terms.append(Term(new[id(term.node)], term.is_negative))
            continue
        left, right = term.node.inputs
        is_straight = is_straight and id(right) not in parts
        stack.append(Term(right, term.is_negative != (term.node.operation == "subtract")))
        stack.append(Term(left, term.is_negative))
    return terms, is_straight


def chained(operation: str, terms: Terms, like: Node) -> Node | None:
    """Terms from left to right in place of a node; None where calls may differ in the shapes."""
    result = terms[0].node
    for term in terms[1:]:
        shape = common_shape((result.shape, term.node.shape))
        if shape is None:
            return None
        result = Node("subtract" if term.is_negative else operation, (result, term.node), like.dtype, shape)
    return shaped(result, like.shape)


def rule_1_flattened(operation: str, terms: Terms) -> Terms:
    return terms


def rule_2_small_first(operation: str, terms: Terms) -> Terms:
    return sorted(terms, key=lambda term: rank_of(term.node))


def rule_3_products_last(operation: str, terms: Terms) -> Terms:
    if operation != "add" or is_integer(terms[0].node):
        return terms
    ranks = [rank_of(term.node) for term in terms]
    products = ("multiply", "square")
    order = sorted(
        range(len(terms)),
        key=lambda i: (ranks[i] if ranks == sorted(ranks) else 0, terms[i].node.operation in products),
    )
    return [terms[i] for i in order]


chains = Normalisation()
