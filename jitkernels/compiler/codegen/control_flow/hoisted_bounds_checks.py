"""Hoist bounds checks of indices that are affine in the induction variable out of a counted loop.

``for c in range(n, w - 1, -1): best[c - w] ...``, where the value of w is unknown: if the first and the last index
are in bounds, so are all between them, and a version of the loop without checks runs; else the version with checks.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jitkernels.compiler.codegen.control_flow.bounded_while import Around, branch_scope, resolve_parameter
from jitkernels.compiler.ir.graph import Graph, Node
from jitkernels.compiler.ir.regions import walk_nodes
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant
from jitkernels.compiler.schedule.region_stages import Body

MAX_VERSIONED_NODES = 200
"""The largest loop body, in nodes, that loop versioning duplicates."""
SIGNS = {"add": 1, "subtract": -1}


class AffineIndex(NamedTuple):
    """An index ``sign * induction variable + sum(sign_i * term_i)``, whose terms are loop-invariant."""

    node: Node
    sign: int
    terms: tuple[tuple[int, Node], ...]


def hoistable_indices(loop: Node, bodies: Mapping[int, Body]) -> list[AffineIndex]:
    """Collect the indices of a counted loop whose bounds checks can be hoisted; none for a loop that contains loops."""
    options = loop.options
    if not options["counts"] or loop.inputs[2].operation != "constant":
        return []
    within = [*walk_nodes(options["body"])]
    if len(within) > MAX_VERSIONED_NODES or any(
        node.operation in ("loop", "bounded") and "grows" in node.options for node in within
    ):
        return []
    if any(node.operation == "loop" for node in within) or bodies[id(options["body"])].groups:
        return []
    results = []
    for node, around in _bounded(options["body"], {}):
        index = None if is_loop_variant(node.options["extent"]) else affine_index(loop, node, node.inputs[0], around)
        if index is not None and abs(index.sign) == 1:
            results.append(index)
    return results


def affine_index(loop: Node, node: Node, operand: Node, around: Around) -> AffineIndex | None:
    """The operand of a node in the body of a counted loop as a sum; None if it is not affine there."""
    total = _Sum(loop.options["body"].inputs, loop.options["carried"])
    return AffineIndex(node, total.sign, tuple(total.terms)) if total.add(operand, around, 1) else None


def _bounded(graph: Graph, around: Around) -> Iterator[tuple[Node, Around]]:
    """Yield the bounds-checked indices of a region and of the branches in it."""
    for node in graph:
        if node.operation == "bounded":
            yield node, around
        elif node.operation == "branch":
            for name in ("yes", "no"):
                yield from _bounded(node.options[name], branch_scope(node, name, around))


class _Sum:
    """The sum that an index is: `sign` times the induction variable, and loop-invariant `terms`."""

    def __init__(self, inputs: list[Node], carried: int) -> None:
        self.count, self.kept = inputs[0], set(inputs[1 + carried :])
        self.sign = 0
        self.terms: list[tuple[int, Node]] = []

    def add(self, node: Node, around: Around, sign: int) -> bool:
        """Add `sign` times `node` to the sum; return False if `node` is not affine in the induction variable."""
        node, around = resolve_parameter(node, around)
        if node is self.count:
            self.sign += sign
            return True
        if node.operation in SIGNS and node.dtype == "int64":
            left, right = node.inputs
            return self.add(left, around, sign) and self.add(right, around, sign * SIGNS[node.operation])
        if (
            node in self.kept
            or node.operation == "constant"
            or (node.operation == "extent" and not is_loop_variant(node.options["extent"]))
        ):
            self.terms.append((sign, node))
            return True
        return False
