"""Recognize attention written out in products and a softmax, and compute it by the kernel ATTENTION.

``softmax(scale * q @ k.T + masks) @ v`` stores matrices of queries by keys; the kernel stores none. The scale may stand
on either side of the product, as a factor or a divisor. Masks are added, or all of them select a negative number in
place of scores (`masked_fill`). Masks of keys alone become the padding.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from jitkernels.attrs.attention import AttentionAttr
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, readers, rebuild_roots, sorted_nodes
from jitkernels.compiler.ir.matrix_ops import matrix_transpose
from jitkernels.compiler.ir.symbolic_dims import Number, same, same_shape
from jitkernels.compiler.schedule.kernel_step import NamedKernel

DTYPES = ("float32", "float64")
Readers = dict[Node, list[Node]]


class Factor(NamedTuple):
    """A number that scores are multiplied with, or divided by."""

    number: Node
    divides: bool


class Scores(NamedTuple):
    """``left @ right``, the factors of that, and what is added to it, or replaces it."""

    left: Node
    right: Node
    factors: tuple[Factor, ...]
    masks: tuple[Node, ...]
    is_filled: bool


class Masks(NamedTuple):
    """What the kernel adds to scores: a mask [masks, queries, keys], and one [..., keys] of each batch entry."""

    mask: Node | None
    padding: Node | None


def recognize_attention(graph: Graph) -> Graph:
    """Replace the products of softmax weights and values by kernels where these compute the same."""
    nodes = list(graph)
    if sum(node.operation == "matmul" for node in nodes) < 2:
        return graph
    read = readers(nodes)
    for root in graph.roots:
        read[root] = [*read[root], root]  # a result is read by the caller, too
    found = {node: kernel for node in nodes if (kernel := _attention(node, read)) is not None}
    if not found:
        return graph
    new: dict[Node, Node] = {}
    for node in sorted_nodes(graph.roots, lambda node: (found[node],) if node in found else node.inputs):
        inputs = [new[operand] for operand in node.inputs] if node not in found else []
        new[node] = new[found[node]] if node in found else node.replace_inputs(inputs)
    return rebuild_roots(graph, new.__getitem__)


def _attention(node: Node, read: Readers) -> Node | None:
    """The result of the kernel that computes a node; None where it is no attention."""
    if node.operation != "matmul" or node.dtype not in DTYPES or node.options.get("is_packed"):
        return None
    weights, v = node.inputs
    lead = node.shape[:-2]
    exponents = _softmax_of(weights, read)
    scores = exponents and _scores_of(exponents, read)
    if not scores or not same_shape(v.shape[:-2], lead):
        return None
    q, k = scores.left, matrix_transpose(scores.right)
    queries, keys = weights.shape[-2:]
    if not same_shape(q.shape[:-2], lead) or not same_shape(k.shape[:-2], lead):
        return None
    masks = _combined(scores, (*lead, queries, keys))
    return None if masks is None else _kernel(node, (q, k, v), masks, scores)


def _softmax_of(weights: Node, read: Readers) -> Node | None:
    """What a node is the softmax of, along the last axis; None where it is none, or is used elsewhere."""
    if weights.operation != "divide" or len(read[weights]) != 1:
        return None
    powers, total = weights.inputs
    if powers.operation != "exp" or len(read[powers]) != 2 or not _is_along_rows(total, "sum", powers):
        return None
    shifted = powers.inputs[0]
    if shifted.operation != "subtract" or len(read[shifted]) != 1:
        return None
    scores, largest = shifted.inputs
    return scores if len(read[scores]) == 2 and _is_along_rows(largest, "max", scores) else None


def _is_along_rows(node: Node, kind: str, rows: Node) -> bool:
    """Whether a node is the reduction of rows along the last axis, which it keeps with one element."""
    if node.operation != "view" or not same(node.shape[-1], 1) or node.ndim != rows.ndim:
        return False
    reduced = node.inputs[0]
    is_reduction = reduced.operation == "reduce" and reduced.inputs[0] is rows
    return is_reduction and reduced.options["kind"] == kind and reduced.options["axes"] == (rows.ndim - 1,)


def _scores_of(node: Node, read: Readers) -> Scores | None:
    """A node as masked and scaled products; None where it is none, or a step to it is used elsewhere."""
    masks: list[Node] = []
    kinds: set[str] = set()
    uses = 2  # by the maximum, and by what is subtracted from
    while node.operation in ("add", "where") and len(read[node]) == uses:
        step = _unmasked(node)
        if step is None:
            return None
        kinds.add(node.operation)
        node, uses = step[0], 1
        masks.append(step[1])
    if len(kinds) > 1:  # NaN stays NaN beside an added mask, not where another is selected
        return None
    factors: list[Factor] = []
    while node.operation in ("multiply", "divide") and len(read[node]) == uses:
        scaled = _unscaled(node)
        if scaled is None:
            return None
        node, uses = scaled[0], 1
        factors.append(scaled[1])
    if node.operation != "matmul" or node.options.get("is_packed") or len(read[node]) != uses:
        return None
    operands = []
    for operand in node.inputs:
        scaled = _unscaled(operand)
        operands.append(scaled[0] if scaled else operand)
        factors += [scaled[1]] if scaled else []
    return Scores(operands[0], operands[1], tuple(factors), tuple(masks), "where" in kinds)


def _unscaled(node: Node) -> tuple[Node, Factor] | None:
    """An array and the number that it is multiplied with; None for other nodes."""
    if node.operation not in ("multiply", "divide"):
        return None
    left, right = node.inputs
    if node.operation == "multiply" and not left.ndim:
        left, right = right, left
    return (left, Factor(right, node.operation == "divide")) if left.ndim and not right.ndim else None


def _unmasked(node: Node) -> tuple[Node, Node] | None:
    """Scores, and what a node adds to them or puts in their place where that is negative; None for other nodes."""
    if node.operation == "add":
        sides = [side for side in node.inputs if same_shape(side.shape, node.shape) and _leads_to_product(side)]
        if len(sides) != 1:
            return None
        other = node.inputs[1] if sides[0] is node.inputs[0] else node.inputs[0]
        return sides[0], other
    condition, left, right = node.inputs
    for kept, number, is_left in ((left, right, True), (right, left, False)):
        value = number.options["value"] if number.operation == "constant" else 0
        if value < 0 and same_shape(kept.shape, node.shape):
            zero = builder.constant(0, node.dtype)
            terms = (zero, number) if is_left else (number, zero)
            return kept, builder.elementwise("where", condition, *terms)
    return None


def _leads_to_product(node: Node) -> bool:
    """Whether a node is made from a product of matrices by scaling and masking alone."""
    while node.operation in ("add", "where", "multiply", "divide"):
        inputs = [one for one in node.inputs if same_shape(one.shape, node.shape) and one.operation != "constant"]
        products = [one for one in inputs if one.operation in ("add", "where", "multiply", "divide", "matmul")]
        if not products:
            return False
        node = products[0]
    return node.operation == "matmul"


def _combined(scores: Scores, shape: Sequence[Number]) -> Masks | None:
    """Masks in the forms that the kernel takes; None where one has the same number for all keys."""
    mask: Node | None = None
    padding: Node | None = None
    *lead, queries, keys = shape

    def both(inner: Node, outer: Node) -> Node:
        if not scores.is_filled:
            return builder.elementwise("add", inner, outer)
        is_filled = builder.elementwise("less", outer, builder.constant(0, outer.dtype))
        return builder.elementwise("where", is_filled, outer, inner)

    for one in reversed(scores.masks):  # the inner ones first
        if one.ndim > len(shape) or not one.ndim or not same(one.shape[-1], keys):
            return None
        own = builder.expand_dims(one, range(len(shape) - one.ndim))
        if all(same(extent, 1) for extent in own.shape[-3:-1]):
            padding = own if padding is None else both(padding, own)
            continue
        if scores.is_filled and padding is not None:  # the kernel fills by the padding last
            own, padding = both(padding, own), None
        mask = own if mask is None else both(mask, own)
    if padding is not None:
        row = builder.squeeze(padding, range(max(padding.ndim - 3, 0), padding.ndim - 1))
        padding = builder.broadcast_to(row, (*lead[:-1], keys))
    if mask is not None:
        each = mask.shape[:-2]
        is_same = all(same(extent, 1) for extent in each[:-1])
        heads = each[-1:] if is_same else lead
        mask = mask if not is_same else builder.squeeze(mask, range(len(each[:-1])))
        mask = builder.broadcast_to(mask, (*heads, queries, keys))
        mask = builder.reshape(mask, (symbolic_dims.product(heads), queries, keys))
    return Masks(mask, padding)


def _scale(factors: Sequence[Factor]) -> float | Node | None:
    """The product of factors; None for one that is 0, which stands for another scale."""
    if all(factor.number.operation == "constant" for factor in factors):
        values = [factor.number.options["value"] for factor in factors]
        if not all(values) or not all(map(math.isfinite, values)):
            return None
        return float(math.prod(1 / v if one.divides else v for v, one in zip(values, factors, strict=True)))
    scale = builder.constant(1, "float64")
    for factor in factors:
        number = builder.cast(factor.number, "float64")
        scale = builder.elementwise("divide" if factor.divides else "multiply", scale, number)
    zero, least = builder.constant(0, "float64"), builder.constant(5e-324, "float64")
    return builder.elementwise("where", builder.elementwise("equal", scale, zero), least, scale)


def _kernel(node: Node, operands: tuple[Node, Node, Node], masks: Masks, scores: Scores) -> Node | None:
    """The result of the kernel; None where there is none."""
    q, k, v = operands
    *outer, heads = node.shape[:-2] or (1,)
    scale = _scale(scores.factors)
    sizes: dict[str, Number] = {
        "batch": symbolic_dims.product(outer), "heads": heads, "kv_heads": heads, "queries": q.shape[-2],
        "keys": k.shape[-2], "d": q.shape[-1], "dv": v.shape[-1],
        "masks": 1 if masks.mask is None else masks.mask.shape[0],
    }  # fmt: skip
    now: dict[str, Any] = {name: symbolic_dims.value_of(size) for name, size in sizes.items()}
    known = scale if isinstance(scale, float) else 1.0
    attr = AttentionAttr(
        **now, masked=masks.mask is not None, padded=masks.padding is not None, masked_fill=scores.is_filled,
        scale=known, dtype=node.dtype,
    )  # fmt: skip
    function = NamedKernel(attr, sizes, ("scale",) if isinstance(scale, Node) else (), serves_all_sizes=True)
    if scale is None or function.external is None:
        return None
    results = ((node.dtype, node.shape),)
    inputs = [*operands, *(one for one in (masks.mask, masks.padding) if one is not None)]
    inputs += [scale] if isinstance(scale, Node) else []
    call = Node("kernel", inputs, node.dtype, node.shape, {"function": function, "results": results, "instead": None})
    return Node("item", (call,), node.dtype, node.shape, {"index": 0})
