"""Loops over windows whose inner loops accumulate numbers become reductions of arrays.

``for j in range(n): for b in range(k): s += x[j + b] * w[b]`` adds few numbers in each iteration of the outer loop, too
few for vectors. As a reduction of a view, the inner loop lets the outer one become a dimension (see `vectorize_loops`),
whose vectors hold neighbouring sums.

1. The inner loop carries numbers alone, which nothing else in it reads: sums, or bools that a constant replaces where
   a condition holds, as in ``if not mask[a, b]: keep = False``.
2. It is short: of long ones LLVM makes vectors of partial sums. Or it sums products of elements, as do matrix products.
3. All loops around it become dimensions with it; else all stay as they are.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from jitkernels.compiler.ir import builder, dim_bounds, symbolic_dims
from jitkernels.compiler.ir.dim_proofs import needs, positive_part
from jitkernels.compiler.ir.graph import Graph, Node, has_value, readers, transformed
from jitkernels.compiler.ir.regions import REGIONS, LoopParts, regions_of, walk_nodes
from jitkernels.compiler.ir.symbolic_dims import Scope
from jitkernels.compiler.transforms.loop_ints import Ints, ints_inside
from jitkernels.compiler.transforms.loop_iterations import Iterations, forget, iterations_of
from jitkernels.compiler.transforms.pad_clipped_windows import with_whole_windows
from jitkernels.compiler.transforms.reduction_identity import COMBINING
from jitkernels.compiler.transforms.vectorize_loops import (
    BatchedIterations,
    StaysLoopError,
    vectorize_loops,
    vectorized_results,
)

MAX_FOLDED_ITERATIONS = 32
"""Of inner loops for which vectors of the outer loop pay more than vectors of partial sums, now."""
SUMMED = frozenset({"float32", "float64", "int64"})


class _Fold(NamedTuple):
    """What a loop accumulates in a carried number: the kind of reduction, its terms, and the nodes that accumulate."""

    kind: str
    terms: tuple[tuple[Node, bool], ...]
    """Each with whether it is subtracted, or for bools negated."""
    nodes: tuple[Node, ...]


def raise_reductions(graph: Graph, scope: Scope, ints: Ints = MappingProxyType({})) -> Graph:
    """Turn nests of loops whose inner ones accumulate numbers into loop nests of arrays, outer loops first."""
    if not any(map(regions_of, graph)):
        return graph
    results: dict[Node, list[Node]] = {}

    def rule(node: Node) -> Node:
        if node.operation == "item" and node.inputs[0] in results:
            index: int = node.options["index"]
            return results[node.inputs[0]][index]
        if node.operation == "loop" and _may_be_nest(node):
            raised = _raised_nest(node, scope, ints)
            if raised is not None:
                results[node] = raised
                return node
        regions = {name: node.options[name] for name in REGIONS if name in node.options}
        inner = {
            name: raise_reductions(region, scope, ints_inside(node, region, ints, scope))
            for name, region in regions.items()
        }
        if any(inner[name] is not region for name, region in regions.items()):
            return Node(node.operation, node.inputs, node.dtype, node.shape, {**node.options, **inner})
        return node

    return transformed(graph, rule)


def _may_be_nest(loop: Node) -> bool:
    """Whether a loop has inner loops that accumulate numbers, and nothing that surely keeps it a loop."""
    nodes = [*walk_nodes(loop.options["body"])]
    inner = [node for node in nodes if node.operation == "loop"]
    if any(region.checks for node in (loop, *inner) for region in regions_of(node)):
        return False
    if any(node.operation in ("call", "native_call", "overflows") or "grows" in node.options for node in nodes):
        return False
    return any(not LoopParts(node).carried[0].ndim for node in inner if LoopParts(node).carried_count)


def _raised_nest(loop: Node, scope: Scope, ints: Ints) -> list[Node] | None:
    """The results of a nest of loops as nodes without any; None where some loop stays."""
    body: Graph = loop.options["body"]
    raised = _without_folds(body, scope, ints_inside(loop, body, ints, scope))
    if raised is None:
        return None
    nest = with_whole_windows(Node("loop", loop.inputs, loop.dtype, loop.shape, {**loop.options, "body": raised}))
    whole: Graph = nest.options["body"]
    inside = vectorize_loops(whole, scope, ints_inside(nest, whole, ints, scope))
    if any(node.operation == "loop" for node in inside):
        return None
    results = vectorized_results(
        Node("loop", nest.inputs, nest.dtype, nest.shape, {**nest.options, "body": inside}), scope, ints
    )
    scope.has_scalar_loops |= results is not None
    return results


def _without_folds(graph: Graph, scope: Scope, ints: Ints) -> Graph | None:
    """A region whose loops that accumulate numbers are reductions; None where one of them has to stay."""
    results: dict[Node, list[Node]] = {}
    new: dict[Node, Node] = {}
    for old in graph:
        # Parameters stay, so what is known of them holds for the rebuilt nodes.
        node = old.replace_inputs([new[operand] for operand in old.inputs])
        if node.operation == "item" and node.inputs[0] in results:
            node = results[node.inputs[0]][node.options["index"]]
        elif node.operation == "item":
            node = _selected(node)
        elif node.operation == "loop":
            body: Graph = node.options["body"]
            inside = _without_folds(body, scope, ints_inside(node, body, ints, scope))
            if inside is None:
                return None
            node = Node("loop", node.inputs, node.dtype, node.shape, {**node.options, "body": inside})
            if not any(parameter.ndim for parameter in LoopParts(node).carried_parameters):
                folded = _folded_results(node, scope, ints)
                if folded is None:
                    return None
                results[node] = folded
        new[old] = node
    return graph.remade([new[one] for one in graph.outputs], (), [new[one] for one in graph.checks])


def _selected(item: Node) -> Node:
    """A result of a branch that chooses between two numbers which are there anyway, as a selection of one."""
    sides = _sides_of(item)
    if sides is None or item.ndim:
        return item
    condition, yes, no, _ = sides
    known = {*item.inputs[0].inputs}
    if all(value in known or value.operation == "constant" for value in (yes, no)):
        return Node("where", (condition, yes, no), item.dtype, ())
    return item


def _folded_results(loop: Node, scope: Scope, ints: Ints) -> list[Node] | None:
    """The results of a loop that accumulates numbers, as reductions of what all iterations compute."""
    parts = LoopParts(loop)
    iterations = iterations_of(parts, ints)
    if iterations is None or not parts.induction[0].options.get("symbol"):
        return None
    folds = _folds_of(parts)
    if folds is None or not (_sums_products(folds) or _is_short(iterations)):
        return None
    iterations = iterations._replace(trip_count=_at_least_zero(iterations.trip_count))
    skipped = {node for fold in folds.values() for node in fold.nodes} | folds.keys()
    try:
        batch = BatchedIterations(parts, iterations, scope, ints_inside(loop, parts.body, ints, scope), skipped)
        results = []
        for parameter, start, output in zip(parts.carried_parameters, parts.carried, parts.body.outputs, strict=True):
            results.append(_total(folds[parameter], start, batch, iterations) if output is not parameter else start)
    except StaysLoopError:
        return None
    finally:
        forget(parts, scope)
    return results


def _at_least_zero(trip_count: symbolic_dims.Number) -> symbolic_dims.Number:
    """A number of iterations, none where a range is empty."""
    if not isinstance(trip_count, symbolic_dims.Extent):
        return max(trip_count, 0)
    return trip_count if needs(trip_count) == [] else positive_part(trip_count)


def _is_short(iterations: Iterations) -> bool:
    """Whether a loop has few iterations; a guard keeps other calls from the code, which adds in another order."""
    most = dim_bounds.limit(iterations.trip_count, is_upper=True)
    return most is not None and not symbolic_dims.is_at_least_now(most, MAX_FOLDED_ITERATIONS + 1)


def _sums_products(folds: dict[Node, _Fold]) -> bool:
    """Whether a loop sums products of elements, and computes nothing else."""
    return all(
        fold.kind == "sum" and term.operation == "multiply" and all(one.operation == "gather" for one in term.inputs)
        for fold in folds.values()
        for term, _ in fold.terms
    )


def _total(fold: _Fold, start: Node, batch: BatchedIterations, iterations: Iterations) -> Node:
    """What a carried number is after all iterations."""
    total = start
    for term, is_negative in fold.terms:
        value = batch.known[term]
        if term not in batch.varying:
            value = builder.broadcast_to(value, (iterations.trip_count,))
        if fold.kind in ("any", "all"):
            value = builder.elementwise("logical_not", value) if is_negative else value
            reduced = Node("reduce", (value,), "bool", (), {"kind": fold.kind, "axes": (0,)})
            total = builder.elementwise(COMBINING[fold.kind], total, reduced)
        else:
            reduced = Node("reduce", (value,), start.dtype, (), {"kind": "sum", "axes": (0,)})
            total = builder.elementwise("subtract" if is_negative else "add", total, reduced)
    return total


def _folds_of(parts: LoopParts) -> dict[Node, _Fold] | None:
    """What a loop accumulates, by carried parameter; None where a carried number is anything else."""
    users = readers(parts.body)
    folds: dict[Node, _Fold] = {}
    for parameter, output in zip(parts.carried_parameters, parts.body.outputs, strict=True):
        if output is parameter:
            continue
        fold = _chosen_constant(parameter, output, users) or _sum(parameter, output, users)
        if fold is None or list(parts.body.outputs).count(output) != 1:
            return None
        folds[parameter] = fold
    return folds


def _sum(parameter: Node, output: Node, users: dict[Node, list[Node]]) -> _Fold | None:
    """``total + a - b``, of which nothing else reads a part."""
    if parameter.dtype not in SUMMED:
        return None
    terms: list[tuple[Node, bool]] = []
    nodes, link = [], output
    while link is not parameter:
        if link.operation not in ("add", "subtract") or link.dtype != parameter.dtype:
            return None
        if len(users[link]) != (link is not output):
            return None
        left, right = link.inputs
        nodes.append(link)
        if _leads_to(left, parameter):
            terms.append((right, link.operation == "subtract"))
            link = left
        elif link.operation == "add":
            terms.append((left, False))
            link = right
        else:
            return None
    return _Fold("sum", tuple(terms[::-1]), tuple(nodes)) if len(users[parameter]) == 1 else None


def _leads_to(node: Node, parameter: Node) -> bool:
    """Whether a sum is that which the loop carries, or begins with it."""
    while node.operation in ("add", "subtract") and node is not parameter:
        node = node.inputs[0]
    return node is parameter


def _chosen_constant(parameter: Node, output: Node, users: dict[Node, list[Node]]) -> _Fold | None:
    """A bool that becomes a constant where a condition holds, and stays otherwise; or ``keep and x``."""
    if parameter.dtype != "bool" or len(users[parameter]) != 1 or users[output]:
        return None
    if output.operation in ("logical_and", "logical_or") and parameter in output.inputs:
        other = next((one for one in output.inputs if one is not parameter), None)
        kind = "all" if output.operation == "logical_and" else "any"
        return _Fold(kind, ((other, False),), (output,)) if other is not None else None
    sides = _sides_of(output)
    if sides is None:
        return None
    condition, yes, no, nodes = sides
    if no is parameter and yes.operation == "constant":
        return _of_constant(condition, yes, nodes, is_negative=False)
    if yes is parameter and no.operation == "constant":
        return _of_constant(condition, no, nodes, is_negative=True)
    return None


def _of_constant(condition: Node, value: Node, nodes: Sequence[Node], *, is_negative: bool) -> _Fold:
    """True where the condition holds in any iteration; or false where it does, so true where it holds in none."""
    is_any = has_value(value, True)
    return _Fold("any" if is_any else "all", ((condition, is_negative == is_any),), tuple(nodes))


def _sides_of(output: Node) -> tuple[Node, Node, Node, tuple[Node, ...]] | None:
    """The condition and both values of a choice, as nodes of the loop's body, and the nodes that choose."""
    if output.operation == "where":
        condition, yes, no = output.inputs
        return condition, yes, no, (output,)
    if output.operation != "item" or output.inputs[0].operation != "branch":
        return None
    (branch,) = output.inputs
    values = []
    for name in ("yes", "no"):
        region: Graph = branch.options[name]
        if len(region.outputs) != 1 or region.checks:
            return None
        outer = dict(zip(region.inputs, branch.inputs[1:], strict=True))
        values.append(outer.get(region.outputs[0], region.outputs[0]))
    return branch.inputs[0], values[0], values[1], (output, branch)
