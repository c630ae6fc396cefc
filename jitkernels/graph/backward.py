"""Reverse mode: the cotangents of some nodes from those of others, as nodes of the same graph."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jitkernels.graph import construct
from jitkernels.graph.branching import of_branch
from jitkernels.graph.construct import UnknownError, zeros
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.linear_algebra import of_call
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.summing import summed_to
from jitkernels.graph.terms import Term

SEVERAL = frozenset({"loop", "branch", "call"})
"""What may have several results, of which each is an `item`."""


class LackingError(Exception):
    """An operation has no derivative. `node`: which."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.node = node


def is_float(node: Node) -> bool:
    """Whether a node is one that derivatives are of."""
    return np.dtype(node.dtype).kind == "f"


def cotangents(outputs: Sequence[Node], given: Sequence[Node], variables: Sequence[Node]) -> list[Node]:
    """For each variable how much the outputs, weighted by what is given for each, change with it.

    Raises LackingError where something between has no derivative.
    """
    nodes = sorted_nodes(outputs)
    active = {id(one) for one in variables}
    several = {id(node.inputs[0]) for node in nodes if node.operation == "item"}
    for node in nodes:
        if any(id(one) in active for one in node.inputs) and (is_float(node) or id(node) in several):
            active.add(id(node))
    found: dict[int, Node] = {}
    for node, one in zip(outputs, given, strict=True):
        _add(found, id(node), one)
    known = {id(one) for one in variables}
    flows: dict[int, dict[int, Node]] = {}
    for node in reversed(nodes):
        cotangent = found.get(id(node))
        if cotangent is not None and node.operation == "item" and node.inputs[0].operation in SEVERAL:
            _add(flows.setdefault(id(node.inputs[0]), {}), node.options["index"], cotangent)
            continue
        if (cotangent is None and id(node) not in flows) or id(node) not in active or id(node) in known:
            continue
        try:
            if node.operation == "branch":
                parts = of_branch(node, flows[id(node)], active, cotangents)
            elif node.operation == "call" and cotangent is None:
                parts = of_call(node, flows[id(node)])
            elif cotangent is None:
                raise UnknownError("a loop")
            else:
                parts = _pulled(node, cotangent, active)
        except UnknownError as error:
            raise LackingError(str(error), node) from None
        for one, part in zip(node.inputs, parts, strict=True):
            if part is not None and id(one) in active:
                _add(found, id(one), part)
    return [found.get(id(one)) or zeros(one.dtype, one.shape) for one in variables]


def _add(found: dict[int, Any], key: int, part: Node) -> None:
    before = found.get(key)
    found[key] = part if before is None else construct.elementwise("add", before, part)


def _pulled(node: Node, cotangent: Node, active: set[int]) -> Sequence[Node | None]:
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
