"""Forward mode: how nodes change with some variables, as nodes of the same graph. Nothing is kept for later.

A rule is an operation's own where that is linear, or its partials; others follow from the reverse pass, which is linear
in the cotangent: going back twice is going forward.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jitkernels.graph import construct
from jitkernels.graph.backward import CALLS, LackingError, cotangents_of_node, is_float, pulled
from jitkernels.graph.cloning import region
from jitkernels.graph.construct import UnknownError, elementwise, zeros
from jitkernels.graph.flows import FLOWS, landed, unsupported
from jitkernels.graph.ir import Node, sorted_nodes
from jitkernels.graph.linear_algebra import of_call
from jitkernels.graph.looping import Parts, settled
from jitkernels.graph.operations import OPERATIONS
from jitkernels.graph.regions import items, parameter
from jitkernels.graph.serving import once
from jitkernels.graph.terms import Term
from jitkernels.graph.totals import Around

LINEAR = frozenset({"cast", "view", "reshape", "update", "gather", "scatter", "concatenate"})
"""Operations of floats, and of numbers of places, that are themselves how they change."""


def tangents(
    outputs: Sequence[Node], given: Sequence[Node], variables: Sequence[Node], around: Around
) -> list[Node]:
    """How outputs change as variables do along what is given. Raises LackingError where that is not known."""
    new = once([*outputs, *variables])
    moves = {id(new[id(one)]): tangent for one, tangent in zip(variables, given, strict=True)}
    found = pushed([new[id(one)] for one in outputs], moves, around)
    return [
        zeros(one.dtype, one.shape) if move is None else move
        for one, move in zip(outputs, found, strict=True)
    ]


def pushed(outputs: Sequence[Node], moves: Mapping[int, Node], around: Around) -> list[Node | None]:
    """The same for what `moves` gives for variables by their ids; None for what does not change."""
    found: dict[int, Node] = dict(moves)
    several: dict[int, dict[int, Node]] = {}
    nodes = sorted_nodes(outputs)
    calls = {id(node.inputs[0]) for node in nodes if node.operation == "item"}
    for node in nodes:
        if id(node) in found or not any(id(one) in found or id(one) in several for one in node.inputs):
            continue
        try:
            if node.operation in CALLS and id(node) in calls:
                several[id(node)] = {}
            elif node.operation in FLOWS:
                through = _loop if node.operation == "loop" else _branch
                several[id(node)] = through(node, found, around)
            elif node.operation == "item" and node.inputs[0].operation in FLOWS:
                move = several[id(node.inputs[0])].get(node.options["index"])
                if move is not None:
                    found[id(node)] = move
            elif is_float(node):
                move = _moved(node, found, around)
                if move is not None:
                    found[id(node)] = move
        except (UnknownError, LackingError) as error:
            raise LackingError(str(error), node) from None
    return [found.get(id(one)) for one in outputs]


def _moved(node: Node, found: Mapping[int, Node], around: Around) -> Node | None:
    """How one node changes."""
    given = [found.get(id(one)) for one in node.inputs]
    options = node.options
    if node.operation in LINEAR or (node.operation in ("reduce", "scan") and options["kind"] == "sum"):
        return node.with_inputs(
            [
                (zeros(one.dtype, one.shape) if move is None else move) if is_float(one) else one
                for one, move in zip(node.inputs, given, strict=True)
            ]
        )
    if node.operation == "where":
        one, other = (0.0 if move is None else move for move in given[1:])
        return _like(elementwise("where", node.inputs[0], one, other), node)
    if node.operation == "matmul":
        pairs = ((given[0], node.inputs[1]), (node.inputs[0], given[1]))
        parts = [
            node.with_inputs((left, right)) for left, right in pairs if left is not None and right is not None
        ]
        return parts[0] if len(parts) == 1 else elementwise("add", *parts)
    if node.operation == "item":  # of what NumPy computes
        given = [found.get(id(one)) for one in node.inputs[0].inputs]
        return _twice(node, given, around, lambda weight: of_call(node.inputs[0], {options["index"]: weight}))
    scalar = OPERATIONS[node.operation].scalar
    if scalar is not None and scalar.partials is not None and OPERATIONS[node.operation].transpose is None:
        return _summed(node, given, scalar.partials)
    active = {id(one) for one, move in zip(node.inputs, given, strict=True) if move is not None}
    return _twice(node, given, around, lambda weight: cotangents_of_node(node, weight, active))


def _summed(node: Node, given: Sequence[Node | None], partials: Sequence[Any]) -> Node | None:
    terms = (*map(Term, node.inputs), Term(node))
    total: Term | None = None
    for partial, move in zip(partials, given, strict=True):
        if partial is None or move is None:
            continue
        factor = partial(*terms)
        part = Term(move) if not isinstance(factor, Term) and factor == 1.0 else Term(move) * factor
        total = part if total is None else total + part
    return None if total is None else _like(total.node, node)


def _like(move: Node, node: Node) -> Node:
    """What changes in one dimension for all of another."""
    return construct.broadcast_to(move, node.shape)


def _twice(
    node: Node,
    given: Sequence[Node | None],
    around: Around,
    back: Callable[[Node], Sequence[Node | None]],
) -> Node | None:
    """The reverse pass of the reverse pass, `back`."""
    weight = Node("positive", (zeros(node.dtype, node.shape),), node.dtype, node.shape)
    pairs = [
        (part, move)
        for part, move in zip(back(weight), given, strict=True)
        if part is not None and move is not None
    ]
    if not pairs:
        return None
    totals = pulled([part for part, _ in pairs], [move for _, move in pairs], [weight], around)
    return totals.of(weight)


def _loop(node: Node, found: Mapping[int, Node], around: Around) -> dict[int, Node]:
    """The loop again, which carries how floats change as well; how its results change, by their numbers."""
    parts = Parts(node)
    moved, _ = settled(parts, found)
    places = sorted(moved)
    inner = around.inside(None)
    carried = {i: parameter(parts.own[i].dtype, parts.own[i].shape, 0) for i in places}
    taken = [
        (own, parameter(one.dtype, one.shape, 0), found[id(one)])
        for own, one in zip(parts.taken, parts.captured, strict=True)
        if id(one) in found and is_float(one)
    ]
    moves = {id(parts.own[i]): one for i, one in carried.items()} | {id(own): one for own, one, _ in taken}
    outputs = [parts.body.outputs[i] for i in places]
    more = []
    for i, move in zip(places, pushed(outputs, moves, inner), strict=True):
        own = carried[i]
        first = found.get(id(parts.carried[i]))
        more.append(
            (
                zeros(own.dtype, own.shape) if first is None else first,
                own,
                landed(zeros(own.dtype, own.shape) if move is None else move, own),
            )
        )
    results = parts.again(more, inner, [(one, move) for _, one, move in taken])
    around.keep(node, results)
    return dict(zip(places, results[len(parts.carried) :], strict=True))


def _branch(node: Node, found: Mapping[int, Node], around: Around) -> dict[int, Node]:
    """The branch again, which gives how its floats change as well."""
    captured, bases = node.inputs[1:], node.options["bases"]
    given = {i: found[id(one)] for i, one in enumerate(captured) if id(one) in found and is_float(one)}
    own = {i: parameter(one.dtype, one.shape, 0) for i, one in given.items()}
    sides = [node.options[name] for name in ("yes", "no")]
    inners = [around.inside(1) for _ in sides]
    moves = [
        pushed(side.outputs, {id(side.inputs[i]): one for i, one in own.items()}, inner)
        for side, inner in zip(sides, inners, strict=True)
    ]
    places = [j for j in range(len(bases)) if any(side[j] is not None for side in moves)]
    inputs = [(own[i], one) for i, one in given.items()]
    at: dict[int, int] = {}
    for j in places:
        if bases[j] >= 0:
            if bases[j] not in own:
                one = captured[bases[j]]
                own[bases[j]] = parameter(one.dtype, one.shape, 0)
                inputs.append((own[bases[j]], zeros(one.dtype, one.shape)))
            at[j] = next(i for i, (place, _) in enumerate(inputs) if place is own[bases[j]])
    options: dict[str, Any] = {"serves": sides[0]}
    for name, side, side_moves, inner in zip(("yes", "no"), sides, moves, inners, strict=True):
        outputs = []
        for j in places:
            like, move = side.outputs[j], side_moves[j]
            if move is None:
                move = zeros(like.dtype, like.shape)
            outputs.append(landed(move, inputs[at[j]][0]) if j in at else move)
        replaced = inner.replaced(sorted_nodes([*side.roots, *outputs]))
        options[name] = region(
            [*side.inputs, *(one for one, _ in inputs)], [*side.outputs, *outputs], side.checks, replaced
        )
        missing = unsupported(options[name])
        if missing:
            raise UnknownError(f"a branch, which would need {missing} in it")
    options["bases"] = (*bases, *(len(captured) + at[j] if j in at else -1 for j in places))
    made = Node("branch", (*node.inputs, *(one for _, one in inputs)), "int64", (), options)
    results = items(made, [*sides[0].outputs, *(sides[0].outputs[j] for j in places)])
    around.keep(node, results)
    return dict(zip(places, results[len(bases) :], strict=True))
