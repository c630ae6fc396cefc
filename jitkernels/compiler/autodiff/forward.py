"""Forward mode: Jacobian-vector products as nodes of the same graph. Nothing is stored on tapes.

A rule is the operation itself where it is linear, or its partials; all others are the transpose of their reverse rule,
which is linear in the cotangent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.compiler.autodiff.branch_vjp import extend_branch, sides_of
from jitkernels.compiler.autodiff.cotangent_accumulator import DerivativeContext, require_supported
from jitkernels.compiler.autodiff.elementwise_rules import PARTIALS
from jitkernels.compiler.autodiff.linalg_rules import call_cotangents
from jitkernels.compiler.autodiff.loop_vjp import active_carried, extend_loop, is_float
from jitkernels.compiler.autodiff.reverse import (
    CALL_OPERATIONS,
    NotDifferentiableError,
    backward_pass,
    cotangents_of_node,
)
from jitkernels.compiler.autodiff.vjp_rules import TRANSPOSES
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnsupportedError, elementwise, zeros
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.node_operators import Term
from jitkernels.compiler.ir.region_memory import FLOWS, copy_to_home
from jitkernels.compiler.ir.regions import LoopParts, merged_nodes, parameter

LINEAR = frozenset({"real", "imag", "complex", "cast", "view", "reshape", "update", "gather", "scatter", "concatenate"})
"""Operations that are linear in their float operands: the tangent of the result is the operation of the tangents."""


def tangents(
    outputs: Sequence[Node], variable_tangents: Sequence[Node], variables: Sequence[Node], context: DerivativeContext
) -> list[Node]:
    """The tangents of the outputs for `variable_tangents`. Raises NotDifferentiableError without a derivative."""
    new = merged_nodes([*outputs, *variables])
    known = {new[variable]: tangent for variable, tangent in zip(variables, variable_tangents, strict=True)}
    output_tangents = forward_pass([new[node] for node in outputs], known, context)
    return list(map(_tangent_or_zeros, output_tangents, outputs))


def forward_pass(outputs: Sequence[Node], known: Mapping[Node, Node], context: DerivativeContext) -> list[Node | None]:
    """The tangents of outputs for the tangents `known` of variables, None where there is none."""
    all_tangents = dict(known)
    item_tangents: dict[Node, dict[int, Node]] = {}
    nodes = sorted_nodes(outputs)
    calls = {node.inputs[0] for node in nodes if node.operation == "item"}
    for node in nodes:
        if node in all_tangents or not any(
            operand in all_tangents or operand in item_tangents for operand in node.inputs
        ):
            continue
        try:
            if node.operation in CALL_OPERATIONS and node in calls:
                item_tangents[node] = {}
            elif node.operation in FLOWS:
                rule = _loop_tangents if node.operation == "loop" else _branch_tangents
                item_tangents[node] = rule(node, all_tangents, context)
            elif node.operation == "item" and node.inputs[0].operation in FLOWS:
                tangent = item_tangents[node.inputs[0]].get(node.options["index"])
                if tangent is not None:
                    all_tangents[node] = tangent
            elif is_float(node):
                tangent = _node_tangent(node, all_tangents, context)
                if tangent is not None:
                    all_tangents[node] = tangent
        except (UnsupportedError, NotDifferentiableError) as error:
            raise NotDifferentiableError(str(error), node) from None
    return [all_tangents.get(node) for node in outputs]


def _node_tangent(node: Node, known: Mapping[Node, Node], context: DerivativeContext) -> Node | None:
    """The tangent of one node from those of its operands."""
    operand_tangents = [known.get(operand) for operand in node.inputs]
    options = node.options
    if node.operation in LINEAR or (node.operation in ("reduce", "scan") and options["kind"] == "sum"):
        return node.with_inputs(
            [
                _tangent_or_zeros(tangent, operand) if is_float(operand) else operand
                for operand, tangent in zip(node.inputs, operand_tangents, strict=True)
            ]
        )
    if node.operation == "where":
        if_true, if_false = (0.0 if tangent is None else tangent for tangent in operand_tangents[1:])
        return _like(elementwise("where", node.inputs[0], if_true, if_false), node)
    if node.operation == "matmul":
        pairs = ((operand_tangents[0], node.inputs[1]), (node.inputs[0], operand_tangents[1]))
        parts = [node.with_inputs((left, right)) for left, right in pairs if left is not None and right is not None]
        return parts[0] if len(parts) == 1 else elementwise("add", *parts)
    if node.operation == "item":  # of a NumPy call
        operand_tangents = [known.get(operand) for operand in node.inputs[0].inputs]
        return _transpose_of_vjp(
            node, operand_tangents, context, lambda weight: call_cotangents(node.inputs[0], {options["index"]: weight})
        )
    partials = PARTIALS.get(node.operation)
    if partials is not None and node.operation not in TRANSPOSES:
        return _sum_of_partials(node, operand_tangents, partials)
    active = {operand for operand, tangent in zip(node.inputs, operand_tangents, strict=True) if tangent is not None}
    return _transpose_of_vjp(node, operand_tangents, context, lambda weight: cotangents_of_node(node, weight, active))


def _sum_of_partials(node: Node, operand_tangents: Sequence[Node | None], partials: Sequence[Any]) -> Node | None:
    terms = (*map(Term, node.inputs), Term(node))
    total: Term | None = None
    for partial, tangent in zip(partials, operand_tangents, strict=True):
        if partial is None or tangent is None:
            continue
        factor = partial(*terms)
        part = Term(tangent) if not isinstance(factor, Term) and factor == 1.0 else Term(tangent) * factor
        total = part if total is None else total + part
    return None if total is None else _like(total.node, node)


def _like(tangent: Node, node: Node) -> Node:
    """A tangent broadcast to the shape of its node."""
    return builder.broadcast_to(tangent, node.shape)


def _transpose_of_vjp(
    node: Node,
    operand_tangents: Sequence[Node | None],
    context: DerivativeContext,
    back: Callable[[Node], Sequence[Node | None]],
) -> Node | None:
    """The JVP as the transpose of the VJP `back`, by a reverse pass through it."""
    weight = Node("positive", (zeros(node.dtype, node.shape),), node.dtype, node.shape)
    pairs = [
        (part, tangent)
        for part, tangent in zip(back(weight), operand_tangents, strict=True)
        if part is not None and tangent is not None
    ]
    if not pairs:
        return None
    totals = backward_pass([part for part, _ in pairs], [tangent for _, tangent in pairs], [weight], context)
    return totals.of(weight)


def _loop_tangents(node: Node, known: Mapping[Node, Node], context: DerivativeContext) -> dict[int, Node]:
    """The tangents of a loop's results by their indices: the loop rebuilt to carry tangents as well."""
    loop = LoopParts(node)
    own = loop.carried_parameters
    differentiable, _ = active_carried(loop, known)
    indices = sorted(differentiable)
    inner = context.inside(None)
    carried = {i: parameter(own[i].dtype, own[i].shape, 0) for i in indices}
    captured = [
        (own_parameter, parameter(value.dtype, value.shape, 0), known[value])
        for own_parameter, value in zip(loop.captured_parameters, loop.captured, strict=True)
        if value in known and is_float(value)
    ]
    tangents_inside = {own[i]: value for i, value in carried.items()}
    tangents_inside |= {own_parameter: value for own_parameter, value, _ in captured}
    outputs = [loop.body.outputs[i] for i in indices]
    more = []
    for i, tangent in zip(indices, forward_pass(outputs, tangents_inside, inner), strict=True):
        home = carried[i]
        initial = _tangent_or_zeros(known.get(loop.carried[i]), home)
        more.append((initial, home, copy_to_home(_tangent_or_zeros(tangent, home), home)))
    results = extend_loop(loop, more, context, inner, [(value, tangent) for _, value, tangent in captured])
    return dict(zip(indices, results[loop.carried_count :], strict=True))


def _tangent_or_zeros(tangent: Node | None, like: Node) -> Node:
    return zeros(like.dtype, like.shape) if tangent is None else tangent


def _branch_tangents(node: Node, known: Mapping[Node, Node], context: DerivativeContext) -> dict[int, Node]:
    """The tangents of a branch's results by their indices: the branch rebuilt to compute tangents as well."""
    captured, bases = node.inputs[1:], node.options["bases"]
    captured_tangents = {i: known[value] for i, value in enumerate(captured) if value in known and is_float(value)}
    own = {i: parameter(value.dtype, value.shape, 0) for i, value in captured_tangents.items()}
    sides = sides_of(node)
    inner = [context.inside(1) for _ in sides]
    tangents_of_sides = [
        forward_pass(side.outputs, {side.inputs[i]: value for i, value in own.items()}, side_context)
        for side, side_context in zip(sides, inner, strict=True)
    ]
    indices = [j for j in range(len(bases)) if any(side[j] is not None for side in tangents_of_sides)]
    inputs = [(own[i], value) for i, value in captured_tangents.items()]
    home_index: dict[int, int] = {}
    for j in indices:
        if bases[j] >= 0:
            if bases[j] not in own:
                value = captured[bases[j]]
                own[bases[j]] = parameter(value.dtype, value.shape, 0)
                inputs.append((own[bases[j]], zeros(value.dtype, value.shape)))
            home_index[j] = next(i for i, (home, _) in enumerate(inputs) if home is own[bases[j]])
    outputs: list[list[Node]] = []
    for side, side_tangents in zip(sides, tangents_of_sides, strict=True):
        outputs.append([_tangent_or_zeros(side_tangents[j], side.outputs[j]) for j in indices])
        for position, j in enumerate(indices):
            if j in home_index:
                outputs[-1][position] = copy_to_home(outputs[-1][position], inputs[home_index[j]][0])
    extra_bases = [len(captured) + home_index[j] if j in home_index else -1 for j in indices]
    results = extend_branch(node, context, inner, inputs, outputs, extra_bases)
    for side in sides_of(results[0].inputs[0]):
        require_supported(side, "a branch whose tangents")
    return dict(zip(indices, results[len(bases) :], strict=True))
