"""Reverse mode: the cotangents of variables from those of outputs, as nodes of the same graph."""

from collections.abc import Mapping, Sequence

from jitkernels.compiler.autodiff.branch_vjp import branch_cotangents
from jitkernels.compiler.autodiff.cotangent_accumulator import CotangentAccumulator, DerivativeContext
from jitkernels.compiler.autodiff.elementwise_rules import PARTIALS
from jitkernels.compiler.autodiff.linalg_rules import call_cotangents
from jitkernels.compiler.autodiff.loop_vjp import is_float, loop_cotangents
from jitkernels.compiler.autodiff.unbroadcast import sum_to_shape
from jitkernels.compiler.autodiff.vjp_rules import TRANSPOSES
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.node_operators import Term
from jitkernels.compiler.ir.regions import merged_nodes

CALL_OPERATIONS = frozenset({"call", "kernel"})
"""Operations with rules of their own and one or several results; each of several is an `item`, as of loops."""


class NotDifferentiableError(Exception):
    """An operation has no derivative. `node`: the operation."""

    def __init__(self, text: str, node: Node) -> None:
        super().__init__(text)
        self.node = node


def cotangents(
    outputs: Sequence[Node], seeds: Sequence[Node], variables: Sequence[Node], context: DerivativeContext
) -> list[Node]:
    """The vector-Jacobian product: for each variable the derivative of the outputs weighted by `seeds`.

    Raises NotDifferentiableError for an operation without a derivative.
    """
    new = merged_nodes([*outputs, *variables])
    variables = [new[variable] for variable in variables]
    totals = backward_pass([new[node] for node in outputs], seeds, variables, context)
    return [totals.of_or_zeros(variable) for variable in variables]


def backward_pass(
    outputs: Sequence[Node],
    seeds: Sequence[Node],
    variables: Sequence[Node],
    context: DerivativeContext,
    initial: Mapping[Node, Node] | None = None,
) -> CotangentAccumulator:
    """The cotangents of all nodes; `initial`: initial values of the sums of some variables."""
    nodes = sorted_nodes(outputs)
    active = set(variables)
    multi_result = {node.inputs[0] for node in nodes if node.operation == "item"}
    for node in nodes:
        if (is_float(node) or node in multi_result) and not active.isdisjoint(node.inputs):
            active.add(node)
    totals = CotangentAccumulator(in_place=context.in_place)
    for variable in variables:
        if initial and variable in initial:
            totals.put(variable, initial[variable])
    for node, seed in zip(outputs, seeds, strict=True):
        totals.add(node, seed)
    known = set(variables)
    result_cotangents: dict[Node, dict[int, Node]] = {}
    for node in reversed(nodes):
        if node not in active or node in known:
            continue
        try:
            if node in result_cotangents and node.operation in CALL_OPERATIONS:
                _add_parts(totals, node, call_cotangents(node, result_cotangents[node]), active)
            elif node in result_cotangents:
                rule = loop_cotangents if node.operation == "loop" else branch_cotangents
                rule(node, result_cotangents[node], active, context, backward_pass, totals)
            elif totals.has(node):
                cotangent = totals.of(node)
                assert cotangent is not None, "there is one"
                if node.operation == "item" and node.inputs[0] in active:
                    previous = result_cotangents.setdefault(node.inputs[0], {})
                    index = node.options["index"]
                    previous[index] = (
                        cotangent if index not in previous else builder.elementwise("add", previous[index], cotangent)
                    )
                    continue
                _add_parts(totals, node, cotangents_of_node(node, cotangent, active), active)
        except (UnsupportedError, NotDifferentiableError) as error:
            raise NotDifferentiableError(str(error), node) from None
    return totals


def _add_parts(totals: CotangentAccumulator, node: Node, parts: Sequence[Node | None], active: set[Node]) -> None:
    for operand, part in zip(node.inputs, parts, strict=True):
        if part is not None and operand in active:
            totals.add(operand, part)


def cotangents_of_node(node: Node, cotangent: Node, active: set[Node]) -> Sequence[Node | None]:
    """The cotangents of the operands of a node; None for each that gets none."""
    rule = TRANSPOSES.get(node.operation)
    if rule is not None:
        return rule(node, cotangent)
    partials = PARTIALS.get(node.operation)
    if partials is None:
        raise UnsupportedError(node.operation)
    terms = (*map(Term, node.inputs), Term(node))
    cotangents_of_operands: list[Node | None] = []
    for operand, partial in zip(node.inputs, partials, strict=True):
        if partial is None or operand not in active:
            cotangents_of_operands.append(None)
            continue
        factor = partial(*terms)
        if isinstance(factor, Term):
            part = builder.elementwise("multiply", cotangent, factor.node)
        elif factor == 1.0:
            part = cotangent
        else:
            part = (-Term(cotangent) if factor == -1.0 else Term(cotangent) * factor).node
        cotangents_of_operands.append(sum_to_shape(part, operand.shape))
    return cotangents_of_operands
