"""Reverse mode: the cotangents of some nodes from those of others, as nodes of the same graph."""

from collections.abc import Mapping, Sequence

import numpy as np

from jitkernels.graph import construct
from jitkernels.graph.branching import of_branch
from jitkernels.graph.construct import UnknownError, zeros
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.linear_algebra import of_call
from jitkernels.graph.looping import of_loop
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.serving import once
from jitkernels.graph.summing import summed_to
from jitkernels.graph.terms import Term
from jitkernels.graph.totals import Around, Totals

CALLS = frozenset({"call", "kernel"})
"""What has rules of its own, and several results or one; each of several is an `item`, as are those of loops."""


class LackingError(Exception):
    """An operation has no derivative. `node`: which."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.node = node


def is_float(node: Node) -> bool:
    """Whether a node is one that derivatives are of."""
    return np.dtype(node.dtype).kind == "f"


def cotangents(
    outputs: Sequence[Node], given: Sequence[Node], variables: Sequence[Node], around: Around
) -> list[Node]:
    """For each variable how much the outputs, weighted by what is given for each, change with it.

    Raises LackingError where something between has no derivative.
    """
    new = once([*outputs, *variables])
    variables = [new[id(one)] for one in variables]
    totals = pulled([new[id(one)] for one in outputs], given, variables, around)
    return [totals.of(one) or zeros(one.dtype, one.shape) for one in variables]


def pulled(
    outputs: Sequence[Node],
    given: Sequence[Node],
    variables: Sequence[Node],
    around: Around,
    begun: Mapping[int, Node] | None = None,
) -> Totals:
    """The cotangents of all nodes; `begun` are sums that are there before, by the ids of variables."""
    nodes = sorted_nodes(outputs)
    active = {id(one) for one in variables}
    several = {id(node.inputs[0]) for node in nodes if node.operation == "item"}
    for node in nodes:
        if any(id(one) in active for one in node.inputs) and (is_float(node) or id(node) in several):
            active.add(id(node))
    totals = Totals(in_place=around.in_place)
    for one in variables:
        if begun and id(one) in begun:
            totals.put(one, begun[id(one)])
    for node, one in zip(outputs, given, strict=True):
        totals.add(node, one)
    known = {id(one) for one in variables}
    flows: dict[int, dict[int, Node]] = {}
    for node in reversed(nodes):
        if id(node) not in active or id(node) in known:
            continue
        try:
            if id(node) in flows and node.operation in CALLS:
                _add_parts(totals, node, of_call(node, flows[id(node)]), active)
            elif id(node) in flows:
                through = of_loop if node.operation == "loop" else of_branch
                through(node, flows[id(node)], active, around, pulled, totals)
            elif totals.has(node):
                cotangent = totals.of(node)
                assert cotangent is not None, "there is one"
                if node.operation == "item" and id(node.inputs[0]) in active:
                    before = flows.setdefault(id(node.inputs[0]), {})
                    index = node.options["index"]
                    before[index] = (
                        cotangent
                        if index not in before
                        else construct.elementwise("add", before[index], cotangent)
                    )
                    continue
                _add_parts(totals, node, cotangents_of_node(node, cotangent, active), active)
        except (UnknownError, LackingError) as error:
            raise LackingError(str(error), node) from None
    return totals


def _add_parts(totals: Totals, node: Node, parts: Sequence[Node | None], active: set[int]) -> None:
    for one, part in zip(node.inputs, parts, strict=True):
        if part is not None and id(one) in active:
            totals.add(one, part)


def cotangents_of_node(node: Node, cotangent: Node, active: set[int]) -> Sequence[Node | None]:
    """What flows to each input of a node."""
    operation = OPERATIONS[node.operation]
    if operation.transpose is not None:
        pulled: Sequence[Node | None] = operation.transpose(node, cotangent)
        return pulled
    partials = operation.scalar.partials if operation.scalar is not None else None
    if partials is None:
        raise UnknownError(node.operation)
    terms = (*map(Term, node.inputs), Term(node))
    found: list[Node | None] = []
    for one, partial in zip(node.inputs, partials, strict=True):
        if partial is None or id(one) not in active:
            found.append(None)
            continue
        factor = partial(*terms)
        if isinstance(factor, Term):
            part = construct.elementwise("multiply", cotangent, factor.node)
        elif factor == 1.0:
            part = cotangent
        else:
            part = (-Term(cotangent) if factor == -1.0 else Term(cotangent) * factor).node
        found.append(summed_to(part, one.shape))
    return found
