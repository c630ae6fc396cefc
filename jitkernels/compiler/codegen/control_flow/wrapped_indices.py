"""Remainders that wrap around at most once, and the iterations of a loop in which they do not.

``u[i, (j + 1) % m]`` with j from 0 to m - 1 needs no division: j + 1 is m or more in the last iteration only. In all
others the index is affine, so that LLVM vectorizes these.
"""

from collections.abc import Iterator
from typing import NamedTuple

from jitkernels.compiler.codegen.control_flow.bounded_while import Around, branch_scope
from jitkernels.compiler.codegen.control_flow.hoisted_bounds_checks import AffineIndex, affine_index
from jitkernels.compiler.ir.graph import Graph, Node, has_value
from jitkernels.compiler.ir.regions import walk_nodes

MAX_SPLIT_NODES = 200
"""The largest loop body, in nodes, that is emitted three times."""


class Wrap(NamedTuple):
    """A remainder whose dividend is affine in the induction variable, with its loop-invariant divisor."""

    dividend: AffineIndex
    divisor: Node
    is_below: bool
    is_above: bool

    @property
    def node(self) -> Node:
        return self.dividend.node


def wraps_of(loop: Node) -> list[Wrap]:
    """The wrapping remainders of an innermost loop that counts up by 1, and checks nothing; else none."""
    options = loop.options
    if (
        not options["counts"]
        or not has_value(loop.inputs[2], 1)
        or not has_value(options["condition"].outputs[0], True)
    ):
        return []
    within = [*walk_nodes(options["body"])]
    if len(within) > MAX_SPLIT_NODES or any(node.operation in ("loop", "bounded", "overflows") for node in within):
        return []
    results = []
    for node, around in _wrapping(options["body"], {}):
        dividend = affine_index(loop, node, node.inputs[0], around)
        divisor = affine_index(loop, node, node.inputs[1], around)
        if dividend is None or divisor is None or dividend.sign != 1 or divisor.sign or len(divisor.terms) != 1:
            continue
        ((sign, of),) = divisor.terms
        if sign == 1:
            results.append(Wrap(dividend, of, *node.options["wraps"]))
    return results


def _wrapping(graph: Graph, around: Around) -> Iterator[tuple[Node, Around]]:
    """Yield the wrapping remainders of a region and of the branches in it."""
    for node in graph:
        if "wraps" in node.options:
            yield node, around
        elif node.operation == "branch":
            for name in ("yes", "no"):
                yield from _wrapping(node.options[name], branch_scope(node, name, around))
