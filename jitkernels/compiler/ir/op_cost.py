"""The cost of operations in additions, as heuristics of fusion, rematerialization and threading use it."""

from jitkernels.compiler.ir.graph import Node
from jitkernels.compiler.ir.ops import OPERATIONS

COSTS = {"reduce": 2.0, "gather": 4.0, "scan": 8.0}


DELICATE = 4.0
"""Cost from which on operations may fail for 1, 0 and values computed from them: divisions, roots, functions."""


def keeps_fp_flags_exact(node: Node) -> bool:
    """Whether an operation may raise floating-point flags for values such as 1 in inactive lanes."""
    return own_cost(node) >= DELICATE


def own_cost(node: Node) -> float:
    """The cost of a node without its inputs, in additions."""
    scalar = OPERATIONS[node.operation].scalar
    return scalar.cost if scalar is not None else COSTS.get(node.operation, 0.5)
