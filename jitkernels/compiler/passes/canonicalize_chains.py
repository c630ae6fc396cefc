"""Canonical form of chains of sums and products: of integers, which wrap in any order; of floats with ``fast_math``.

1. ``(a + b) - (c + d)`` becomes one chain ``a + b - c - d``, and products likewise, where the inner nodes have one use.
2. Operands of lower rank come first, constants before all: their partial result is computed once, or folded.
3. Products come last, so that one FMA adds each.
"""

from typing import Any

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.passes.matchers import (
    broadcast_like,
    common_shape,
    is_bool,
    is_float,
    is_integer,
    nontrivial_rank,
)
from jitkernels.compiler.passes.pattern_rewriter import GraphPass, rebuild_if_changed, use_counts
from jitkernels.core.frozen_dataclass import frozen_dataclass

CHAIN_OPERATIONS = {"add": "add", "subtract": "add", "multiply": "multiply"}


@frozen_dataclass
class ChainTerm:
    """One operand of a chain; `is_negative` if the chain subtracts it (never in products)."""

    node: Node
    is_negative: bool = False


Terms = list[ChainTerm]


def _chain_operation(node: Node, fast_math: bool) -> str:
    """``add`` or ``multiply`` for a node that may be reordered, "" for any other."""
    family = CHAIN_OPERATIONS.get(node.operation, "")
    return family if family and not is_bool(node) and (fast_math or not is_float(node)) else ""


def terms_of(node: Node, parts: set[Node], new: dict[Node, Node]) -> tuple[Terms, bool]:
    """The terms of a chain from left to right, and whether the chain associates from left to right."""
    terms: Terms = []
    is_left_to_right = True
    stack = [ChainTerm(node)]
    while stack:
        term = stack.pop()
        if term.node is not node and term.node not in parts:
            terms.append(ChainTerm(new[term.node], term.is_negative))
            continue
        left, right = term.node.inputs
        is_left_to_right = is_left_to_right and right not in parts
        stack.append(ChainTerm(right, term.is_negative != (term.node.operation == "subtract")))
        stack.append(ChainTerm(left, term.is_negative))
    return terms, is_left_to_right


def build_chain(operation: str, terms: Terms, like: Node) -> Node | None:
    """The terms combined from left to right to replace `like`; None where other calls may broadcast differently."""
    result = terms[0].node
    for term in terms[1:]:
        shape = common_shape((result.shape, term.node.shape))
        if shape is None:
            return None
        result = Node("subtract" if term.is_negative else operation, (result, term.node), like.dtype, shape)
    return broadcast_like(result, like.shape)


def rule_1_flattened(operation: str, terms: Terms) -> Terms:
    return terms


def rule_2_small_first(operation: str, terms: Terms) -> Terms:
    return sorted(terms, key=lambda term: nontrivial_rank(term.node))


def rule_3_products_last(operation: str, terms: Terms) -> Terms:
    if operation != "add" or is_integer(terms[0].node):
        return terms
    ranks = [nontrivial_rank(term.node) for term in terms]
    products = ("multiply", "square")
    order = sorted(
        range(len(terms)),
        key=lambda i: (ranks[i] if ranks == sorted(ranks) else 0, terms[i].node.operation in products),
    )
    return [terms[i] for i in order]


def _run(graph: Graph, config: JitConfig, rules: dict[str, Any]) -> Graph:
    nodes = list(graph)
    parts = inner_nodes(graph, nodes, config.fast_math) if "rule_1_flattened" in rules else set()
    new: dict[Node, Node] = {}
    for node in nodes:
        result = node.replace_inputs([new[operand] for operand in node.inputs])
        if _chain_operation(node, config.fast_math) and node not in parts:
            result = canonical_form(node, parts, new, rules) or result
        new[node] = result
    return rebuild_if_changed(graph, new)


def inner_nodes(graph: Graph, nodes: list[Node], fast_math: bool) -> set[Node]:
    """The inner nodes of chains."""
    counts = use_counts(graph, nodes)
    result: set[Node] = set()
    for node in nodes:
        family = _chain_operation(node, fast_math)
        for operand in node.inputs if family else ():
            has_one_use = counts[operand] == 1 and node.inputs.count(operand) == 1
            if has_one_use and operand.dtype == node.dtype and _chain_operation(operand, fast_math) == family:
                result.add(operand)
    return result


def canonical_form(node: Node, parts: set[Node], new: dict[Node, Node], rules: dict[str, Any]) -> Node | None:
    """The chain whose root is `node` in canonical form; None if it already is."""
    before, is_left_to_right = terms_of(node, parts, new)
    if len(before) < 3:
        return None
    operation = CHAIN_OPERATIONS[node.operation]
    after = before
    for rule in rules.values():
        after = rule(operation, after)
    first = next((i for i, term in enumerate(after) if not term.is_negative), None)
    if first is None:
        return None
    after = [after[first], *after[:first], *after[first + 1 :]]
    return None if after == before and is_left_to_right else build_chain(operation, after, node)


canonicalize_chains_pass = GraphPass(
    "canonicalize_chains", _run, rule_1_flattened, rule_2_small_first, rule_3_products_last
)
