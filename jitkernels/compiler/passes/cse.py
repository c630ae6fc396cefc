"""Common subexpressions: what computes the same is computed once.

1. Nodes of the same operation, options, dtype and shape with the same inputs are one node.
2. Operands of sums, products, equalities, bits and integer extremes may change places; a NaN may then be the other one.
3. ``a > b`` is ``b < a``, and ``a >= b`` is ``b <= a``.

Functions that graphs know nothing of are called as often as the program says.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.graph.config import JitConfig
from jitkernels.graph.ir import Graph, Node, key_of
from jitkernels.graph.passes.matching import is_float
from jitkernels.graph.passes.rewriting import Facts, swept

OF_BITS = {f"{kind}_{name}" for kind in ("bitwise", "logical") for name in ("and", "or", "xor")}
COMMUTATIVE = frozenset(("add", "multiply", "equal", "not_equal", *OF_BITS))
OF_INTEGERS = frozenset(("maximum", "minimum", "fmax", "fmin"))
MIRRORED = {"greater": "less", "greater_equal": "less_equal"}
DISTINCT = frozenset(("input", "call"))

Key = tuple[Any, ...]


class Sharing:
    """The pass. Each rule makes keys more alike."""

    name = "common"

    def __init__(self) -> None:
        self.rules: dict[str, Callable[[Node, Key], Key]] = {
            rule.__name__: rule for rule in (rule_1_equal_keys, rule_2_operands_in_order, rule_3_mirrored)
        }

    def __call__(self, graph: Graph, config: JitConfig) -> Graph:
        numbers: dict[int, int] = {}
        known: dict[Key, Node] = {}

        def shared(node: Node, facts: Facts) -> Node:
            if node.operation in DISTINCT:
                numbers[id(node)] = len(numbers)
                known[("one of its own", len(numbers))] = node  # kept, for its id
                return node
            key: Key = (
                node.operation,
                tuple(numbers[id(one)] for one in node.inputs),
                "the one",
                len(numbers),
            )
            for rule in self.rules.values():
                key = rule(node, key)
            found = known.setdefault(key, node)
            if found is node:
                numbers[id(node)] = len(numbers)
            return found

        return swept(graph, shared, config.fast_math)


def rule_1_equal_keys(node: Node, key: Key) -> Key:
    return key_of(node, key[1])


def rule_2_operands_in_order(node: Node, key: Key) -> Key:
    if node.operation in COMMUTATIVE or (node.operation in OF_INTEGERS and not is_float(node)):
        return (key[0], tuple(sorted(key[1])), *key[2:])
    return key


def rule_3_mirrored(node: Node, key: Key) -> Key:
    if node.operation in MIRRORED:
        return (MIRRORED[node.operation], tuple(reversed(key[1])), *key[2:])
    return key


common = Sharing()
