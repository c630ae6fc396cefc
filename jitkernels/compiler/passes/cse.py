"""Common subexpression elimination: nodes that compute the same value become one node.

1. Nodes of the same operation, options, dtype and shape with the same operands become one node.
2. Operands of commutative operations (sums, products, equalities, bitwise operations, integer extremes) are sorted
   first; which NaN payload results may change.
3. ``a > b`` becomes ``b < a``, and ``a >= b`` becomes ``b <= a``, before the comparison.

Calls of opaque functions stay separate: the program decides how often they run.
"""

from typing import Any

from jitkernels.compiler.ir.config import JitConfig
from jitkernels.compiler.ir.graph import Graph, Node, key_of
from jitkernels.compiler.passes.matchers import is_float
from jitkernels.compiler.passes.pattern_rewriter import GraphPass, MatchContext, rewrite_nodes

BITWISE_AND_LOGICAL = {f"{kind}_{name}" for kind in ("bitwise", "logical") for name in ("and", "or", "xor")}
COMMUTATIVE = frozenset(("add", "multiply", "equal", "not_equal", *BITWISE_AND_LOGICAL))
COMMUTATIVE_FOR_INTEGERS = frozenset(("maximum", "minimum", "fmax", "fmin"))
SWAPPED_COMPARISONS = {"greater": "less", "greater_equal": "less_equal"}
NEVER_SHARED = frozenset(("input", "call", "native_call"))

Key = tuple[Any, ...]


def rule_1_equal_keys(node: Node, key: Key) -> Key:
    return key_of(node, key[1])


def rule_2_operands_in_order(node: Node, key: Key) -> Key:
    if node.operation in COMMUTATIVE or (node.operation in COMMUTATIVE_FOR_INTEGERS and not is_float(node)):
        return (key[0], tuple(sorted(key[1])), *key[2:])
    return key


def rule_3_mirrored(node: Node, key: Key) -> Key:
    if node.operation in SWAPPED_COMPARISONS:
        return (SWAPPED_COMPARISONS[node.operation], tuple(reversed(key[1])), *key[2:])
    return key


def _run(graph: Graph, config: JitConfig, rules: dict[str, Any]) -> Graph:
    """Replace each node by the first one with an equal key; each rule brings keys of equivalent nodes closer."""
    numbers: dict[Node, int] = {}
    representatives: dict[Key, Node] = {}

    def representative_of(node: Node, context: MatchContext) -> Node:
        if node.operation in NEVER_SHARED:
            numbers[node] = len(numbers)
            return node
        key: Key = (node.operation, tuple(numbers[operand] for operand in node.inputs), "no rule", len(numbers))
        for rule in rules.values():
            key = rule(node, key)
        representative = representatives.setdefault(key, node)
        if representative is node:
            numbers[node] = len(numbers)
        return representative

    return rewrite_nodes(graph, representative_of, config.fast_math)


cse_pass = GraphPass("cse", _run, rule_1_equal_keys, rule_2_operands_in_order, rule_3_mirrored)
