"""Tensor contractions: a sum of products of two arrays becomes a product of matrices (transpose-transpose-GEMM-transpose).

``np.sum(x[..., None] * w, axis=-2)`` and a convolution by windows, ``sum over c, a, d of x[n, c, i + a, j + d] *
w[f, c, a, d]``, are products of a matrix of windows (im2col) with one of filters. A dimension of the product is

* summed: both operands have it,
* a row or a column of the result: one operand has it. The last of the dimensions that are one operand's are its columns,
  those before them, of the other operand, the rows,
* a batch of such products: whatever is before, of one operand.

Sums over a dimension that one operand lacks, and results with a dimension that both have, stay loop nests; so do products
with few rows or columns, as of a matrix with a vector, and such whose matrix of windows would be large.
"""

from collections.abc import Sequence
from typing import NamedTuple

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Graph, Node, readers, transformed
from jitkernels.compiler.ir.matrix_ops import matmul
from jitkernels.compiler.ir.symbolic_dims import Number, is_loop_variant, same

MATRIX_DTYPES = ("float32", "float64")
MIN_ROWS, MIN_SUMMED, MIN_MULTIPLICATIONS = 4, 4, 1 << 13
"""The least rows and columns, terms of a sum, and multiplications of a contraction that is a product of matrices."""
MAX_MATRIX_ELEMENTS = 1 << 22
"""The most elements of a matrix that is an operand's copy."""


def lower_contractions(graph: Graph) -> Graph:
    """Turn the sums of products of a graph into products of matrices, where these are large enough."""
    if not any(node.operation == "reduce" and node.inputs[0].operation == "multiply" for node in graph):
        return graph
    read = readers(graph)
    outputs = set(graph.roots)
    inside = {node: read[node.inputs[0]] for node in graph if node.operation == "reduce"}
    single = {node for node, others in inside.items() if len(others) == 1 and node.inputs[0] not in outputs}
    origins = {node.origin for node in single}

    def rule(node: Node) -> Node:
        if node.operation != "reduce" or node.origin not in origins:
            return node
        return _as_product(node) or node

    return transformed(graph, rule)


class _Dims(NamedTuple):
    """Dimensions of a contraction by their place in a product of matrices. `is_left`: the rows are the left factor's."""

    batch: list[int]
    rows: list[int]
    columns: list[int]
    summed: list[int]
    is_left: bool


def _as_product(node: Node) -> Node | None:
    """A sum of products as a product of matrices; None where it stays a loop nest."""
    terms = node.inputs[0]
    if node.options["kind"] != "sum" or terms.operation != "multiply" or node.dtype not in MATRIX_DTYPES:
        return None
    if terms.dtype != node.dtype or any(map(is_loop_variant, terms.shape)):
        return None
    factors = [builder.broadcast_to(operand, terms.shape) for operand in terms.inputs]
    dims = _dims_of(node, factors)
    if dims is None or not _is_large(terms, dims):
        return None
    left, right = factors if dims.is_left else factors[::-1]
    first, second = (
        _matrix(left, dims, [*dims.rows, *dims.summed], (dims.rows, dims.summed)),
        _matrix(right, dims, [*dims.summed, *dims.columns], (dims.summed, dims.columns)),
    )
    product = matmul(first, second)
    order = [*dims.batch, *dims.rows, *dims.columns]
    whole = builder.reshape(product, [terms.shape[dim] for dim in order])
    kept = [dim for dim in range(terms.ndim) if dim not in node.options["axes"]]
    index_map = tuple((0, ((kept.index(dim), 1),)) for dim in order)
    return builder.view(whole, index_map, node.shape)


def _dims_of(node: Node, factors: Sequence[Node]) -> _Dims | None:
    """The dimensions of a contraction; None where it is no product of matrices."""
    terms, axes = node.inputs[0], node.options["axes"]
    sides = [_dimensions(factor) for factor in factors]
    wide = [dim for dim in range(terms.ndim) if not same(terms.shape[dim], 1)]
    if any(all(dim in side for side in sides) != (dim in axes) or not any(dim in side for side in sides) for dim in wide):
        return None
    kept = [(dim, dim in sides[0]) for dim in wide if dim not in axes]
    groups: list[tuple[bool, list[int]]] = []
    for dim, is_first in kept:
        if not groups or groups[-1][0] != is_first:
            groups.append((is_first, []))
        groups[-1][1].append(dim)
    if not 2 <= len(groups) <= 3:
        return None
    *before, (is_left, rows), (_, columns) = groups
    batch = [dim for _, dims in before for dim in dims]
    return _Dims(batch, rows, columns, [dim for dim in wide if dim in axes], is_left)


def _dimensions(factor: Node) -> set[int]:
    """The dimensions of a factor along which its elements differ."""
    if factor.operation != "view":
        return set(range(factor.ndim))
    return {dim for _, steps in factor.options["map"] for dim, _ in steps}


def _is_large(terms: Node, dims: _Dims) -> bool:
    """Whether a product of matrices is faster than a loop nest. A guess from the sizes of the traced call."""
    batch, rows, columns, summed = (
        traced_product(terms.shape[dim] for dim in group) for group in (dims.batch, dims.rows, dims.columns, dims.summed)
    )
    return (
        min(rows, columns) >= MIN_ROWS
        and summed >= MIN_SUMMED
        and rows * columns * summed >= MIN_MULTIPLICATIONS
        and batch * max(rows, columns) * summed <= MAX_MATRIX_ELEMENTS
    )


def _matrix(factor: Node, dims: _Dims, order: Sequence[int], sides: tuple[list[int], list[int]]) -> Node:
    """A factor as a matrix, with the dimensions of the batch in front where it has them."""
    own = _dimensions(factor)
    batch = [dim for dim in dims.batch if dim in own]
    order = [*batch, *order]
    index_map = _inverse(factor, order)
    shown = builder.view(factor, index_map, [factor.shape[dim] for dim in order])
    count = [symbolic_dims.product(factor.shape[dim] for dim in side) for side in sides]
    shape: list[Number] = [symbolic_dims.product(factor.shape[dim] for dim in batch)] if batch else []
    return builder.reshape(shown, [*shape, *count])


def _inverse(factor: Node, order: Sequence[int]) -> tuple[tuple[Number, tuple[tuple[int, Number], ...]], ...]:
    """The index map that shows some dimensions of a factor in an order: the others have one element, or all the same."""
    return tuple((0, ((order.index(dim), 1),) if dim in order else ()) for dim in range(factor.ndim))
