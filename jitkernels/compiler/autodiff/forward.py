"""Forward mode: Jacobian-vector products as nodes of the same graph. Nothing is stored on tapes.

A rule is the operation itself where it is linear, or its partials; all others are the transpose of their reverse rule,
which is linear in the cotangent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.compiler.autodiff.cotangent_accumulator import Around
from jitkernels.compiler.autodiff.elementwise_rules import partials_of
from jitkernels.compiler.autodiff.linalg_rules import call_cotangents
from jitkernels.compiler.autodiff.loop_vjp import Parts, active_carried
from jitkernels.compiler.autodiff.node_operators import Term
from jitkernels.compiler.autodiff.reverse import (
    CALLS,
    NotDifferentiableError,
    backward_pass,
    cotangents_of_node,
    is_float,
)
from jitkernels.compiler.autodiff.vjp_rules import TRANSPOSES
from jitkernels.compiler.ir import builder
from jitkernels.compiler.ir.builder import UnknownError, elementwise, zeros
from jitkernels.compiler.ir.clone_region import region
from jitkernels.compiler.ir.graph import Node, sorted_nodes
from jitkernels.compiler.ir.merge_loop_variants import once
from jitkernels.compiler.ir.ops import OPERATIONS
from jitkernels.compiler.ir.region_memory import FLOWS, landed, unsupported
from jitkernels.compiler.ir.regions import items, parameter

LINEAR = frozenset({"cast", "view", "reshape", "update", "gather", "scatter", "concatenate"})
"""Operations that are linear in their float operands: the tangent of the result is the operation of the tangents."""


def tangents(
    outputs: Sequence[Node], variable_tangents: Sequence[Node], variables: Sequence[Node], around: Around
) -> list[Node]:
    """The tangents of the outputs for `variable_tangents`. Raises NotDifferentiableError without a derivative."""
    new = once([*outputs, *variables])
    known = {id(new[id(variable)]): tangent for variable, tangent in zip(variables, variable_tangents, strict=True)}
    output_tangents = forward_pass([new[id(node)] for node in outputs], known, around)
    return [
        zeros(node.dtype, node.shape) if move is None else move
        for node, move in zip(outputs, output_tangents, strict=True)
    ]


def forward_pass(outputs: Sequence[Node], known: Mapping[int, Node], around: Around) -> list[Node | None]:
    """The tangents of outputs for the tangents `known` of variables, by their ids; None where there is none."""
    tangents_by_id: dict[int, Node] = dict(known)
    item_tangents: dict[int, dict[int, Node]] = {}
    nodes = sorted_nodes(outputs)
    calls = {id(node.inputs[0]) for node in nodes if node.operation == "item"}
    for node in nodes:
        if id(node) in tangents_by_id or not any(
            id(operand) in tangents_by_id or id(operand) in item_tangents for operand in node.inputs
        ):
            continue
        try:
            if node.operation in CALLS and id(node) in calls:
                item_tangents[id(node)] = {}
            elif node.operation in FLOWS:
                rule = _loop if node.operation == "loop" else _branch
                item_tangents[id(node)] = rule(node, tangents_by_id, around)
            elif node.operation == "item" and node.inputs[0].operation in FLOWS:
                tangent = item_tangents[id(node.inputs[0])].get(node.options["index"])
                if tangent is not None:
                    tangents_by_id[id(node)] = tangent
            elif is_float(node):
                tangent = _node_tangent(node, tangents_by_id, around)
                if tangent is not None:
                    tangents_by_id[id(node)] = tangent
        except (UnknownError, NotDifferentiableError) as error:
            raise NotDifferentiableError(str(error), node) from None
    return [tangents_by_id.get(id(node)) for node in outputs]


def _node_tangent(node: Node, known: Mapping[int, Node], around: Around) -> Node | None:
    """The tangent of one node from those of its operands."""
    operand_tangents = [known.get(id(operand)) for operand in node.inputs]
    options = node.options
    if node.operation in LINEAR or (node.operation in ("reduce", "scan") and options["kind"] == "sum"):
        return node.with_inputs(
            [
                (zeros(operand.dtype, operand.shape) if tangent is None else tangent) if is_float(operand) else operand
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
        operand_tangents = [known.get(id(operand)) for operand in node.inputs[0].inputs]
        return _transpose_of_vjp(
            node, operand_tangents, around, lambda weight: call_cotangents(node.inputs[0], {options["index"]: weight})
        )
    partials = partials_of(node.operation) if OPERATIONS[node.operation].scalar is not None else None
    if partials is not None and node.operation not in TRANSPOSES:
        return _sum_of_partials(node, operand_tangents, partials)
    active = {
        id(operand) for operand, tangent in zip(node.inputs, operand_tangents, strict=True) if tangent is not None
    }
    return _transpose_of_vjp(node, operand_tangents, around, lambda weight: cotangents_of_node(node, weight, active))


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
    node: Node, operand_tangents: Sequence[Node | None], around: Around, back: Callable[[Node], Sequence[Node | None]]
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
    totals = backward_pass([part for part, _ in pairs], [tangent for _, tangent in pairs], [weight], around)
    return totals.of(weight)


def _loop(node: Node, known: Mapping[int, Node], around: Around) -> dict[int, Node]:
    """The tangents of a loop's results by their indices: the loop rebuilt to carry tangents as well."""
    parts = Parts(node)
    differentiable, _ = active_carried(parts, known)
    indices = sorted(differentiable)
    inner = around.inside(None)
    carried = {i: parameter(parts.own[i].dtype, parts.own[i].shape, 0) for i in indices}
    captured = [
        (own, parameter(value.dtype, value.shape, 0), known[id(value)])
        for own, value in zip(parts.taken, parts.captured, strict=True)
        if id(value) in known and is_float(value)
    ]
    moves = {id(parts.own[i]): value for i, value in carried.items()} | {id(own): value for own, value, _ in captured}
    outputs = [parts.body.outputs[i] for i in indices]
    more = []
    for i, tangent in zip(indices, forward_pass(outputs, moves, inner), strict=True):
        own = carried[i]
        first = known.get(id(parts.carried[i]))
        more.append(
            (
                zeros(own.dtype, own.shape) if first is None else first,
                own,
                landed(zeros(own.dtype, own.shape) if tangent is None else tangent, own),
            )
        )
    results = parts.again(more, inner, [(value, tangent) for _, value, tangent in captured])
    around.keep(node, results)
    return dict(zip(indices, results[len(parts.carried) :], strict=True))


def _branch(node: Node, known: Mapping[int, Node], around: Around) -> dict[int, Node]:
    """The tangents of a branch's results by their indices: the branch rebuilt to compute tangents as well."""
    captured, bases = node.inputs[1:], node.options["bases"]
    captured_tangents = {
        i: known[id(value)] for i, value in enumerate(captured) if id(value) in known and is_float(value)
    }
    own = {i: parameter(value.dtype, value.shape, 0) for i, value in captured_tangents.items()}
    sides = [node.options[name] for name in ("yes", "no")]
    inners = [around.inside(1) for _ in sides]
    moves = [
        forward_pass(side.outputs, {id(side.inputs[i]): value for i, value in own.items()}, inner)
        for side, inner in zip(sides, inners, strict=True)
    ]
    indices = [j for j in range(len(bases)) if any(side[j] is not None for side in moves)]
    inputs = [(own[i], value) for i, value in captured_tangents.items()]
    home_index: dict[int, int] = {}
    for j in indices:
        if bases[j] >= 0:
            if bases[j] not in own:
                value = captured[bases[j]]
                own[bases[j]] = parameter(value.dtype, value.shape, 0)
                inputs.append((own[bases[j]], zeros(value.dtype, value.shape)))
            home_index[j] = next(i for i, (home, _) in enumerate(inputs) if home is own[bases[j]])
    options: dict[str, Any] = {"serves": sides[0]}
    for name, side, side_moves, inner in zip(("yes", "no"), sides, moves, inners, strict=True):
        outputs = []
        for j in indices:
            like, tangent = side.outputs[j], side_moves[j]
            if tangent is None:
                tangent = zeros(like.dtype, like.shape)
            outputs.append(landed(tangent, inputs[home_index[j]][0]) if j in home_index else tangent)
        replaced = inner.replaced(sorted_nodes([*side.roots, *outputs]))
        options[name] = region(
            [*side.inputs, *(value for value, _ in inputs)], [*side.outputs, *outputs], side.checks, replaced
        )
        missing = unsupported(options[name])
        if missing:
            raise UnknownError(f"a branch whose tangents would contain {missing}")
    options["bases"] = (*bases, *(len(captured) + home_index[j] if j in home_index else -1 for j in indices))
    branch = Node("branch", (*node.inputs, *(value for _, value in inputs)), "int64", (), options)
    results = items(branch, [*sides[0].outputs, *(sides[0].outputs[j] for j in indices)])
    around.keep(node, results)
    return dict(zip(indices, results[len(bases) :], strict=True))
