"""Tensor contractions: a sum of products of two arrays becomes a product of matrices.

``np.sum(x[..., None] * w, axis=-2)`` and a convolution by windows, ``sum over c, a, d of x[n, c, i + a, j + d] *
w[f, c, a, d]``, are products of a matrix of windows (im2col) with one of filters: transpose-transpose-GEMM-transpose.
A dimension of the products is

* summed: both factors have it,
* a row or a column of the result: one factor has it. In the order of the result, the last dimensions of one factor are
  its columns, those of the other factor before them the rows,
* a batch of such matrices: whatever is before, of one factor.

Sums over a dimension that one factor lacks, and results with a dimension that both have, stay loop nests; so do
products with few rows or columns, as of a matrix with a vector, and such whose matrix of windows would be large.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.dim_bounds import is_product_at_most_now, traced_product
from jitkernels.compiler.ir.graph import Graph, Node, readers, transformed
from jitkernels.compiler.ir.matrix_ops import matmul, matrix_transpose
from jitkernels.compiler.ir.symbolic_dims import is_loop_variant, same

MATRIX_DTYPES = ("float32", "float64")
MIN_MATRIX_ROWS, MIN_SUMMED, MIN_MULTIPLICATIONS = 4, 4, 1 << 13
"""The least rows and columns, terms of a sum, and multiplications of a contraction that is a product of matrices."""
MAX_MATRIX_ELEMENTS = 1 << 22
"""The most elements of a matrix that is an operand's copy."""


def lower_contractions(graph: Graph) -> Graph:
    """Turn the sums of products of a graph into products of matrices, where these are large enough."""
    if not any(map(_is_sum_of_products, graph)):
        return graph
    read, outputs = readers(graph), set(graph.roots)
    orders = {
        node.origin: _order_of(node, [*read[node], *[node] * (node in outputs)])
        for node in graph
        if _is_sum_of_products(node) and len(read[node.inputs[0]]) == 1 and node.inputs[0] not in outputs
    }

    def rule(node: Node) -> Node:
        if node.operation != "reduce" or node.origin not in orders or not _is_sum_of_products(node):
            return node
        return _as_product(node, orders[node.origin]) or node

    return transformed(graph, rule)


def _is_sum_of_products(node: Node) -> bool:
    if node.operation != "reduce" or node.options["kind"] != "sum" or node.dtype not in MATRIX_DTYPES:
        return False
    terms = node.inputs[0]
    return terms.operation == "multiply" and terms.dtype == node.dtype and not any(map(is_loop_variant, terms.shape))


def _order_of(node: Node, users: Sequence[Node]) -> list[int]:
    """The dimensions of a sum in the order in which its only user, a transpose, shows them."""
    if len(users) != 1 or users[0].operation != "view" or users[0].inputs[0] is not node:
        return [*range(node.ndim)]
    place = [steps[0][0] if steps else 0 for _, steps in users[0].options["map"]]
    return sorted(range(node.ndim), key=place.__getitem__)


class _Dims(NamedTuple):
    """Dimensions of a contraction by their place in a product of matrices. `is_left`: rows are the first factor's."""

    batch: list[int]
    rows: list[int]
    columns: list[int]
    summed: list[int]
    is_left: bool


def _as_product(node: Node, order: Sequence[int]) -> Node | None:
    """A sum of products as a product of matrices; None where it stays a loop nest. `order`: of its dimensions."""
    terms = node.inputs[0]
    factors = [builder.broadcast_to(operand, terms.shape) for operand in terms.inputs]
    dims = next((dims for dims in _candidates(node, factors, order) if _is_large(terms, dims)), None)
    if dims is None:
        return None
    left, right = factors if dims.is_left else factors[::-1]
    product = matmul(_matrix(left, dims, dims.rows, dims.summed), _matrix(right, dims, dims.summed, dims.columns))
    result_order = [*dims.batch, *dims.rows, *dims.columns]
    whole = builder.reshape(product, [terms.shape[dim] for dim in result_order])
    kept = [dim for dim in range(terms.ndim) if dim not in node.options["axes"]]
    return builder.view(whole, tuple((0, ((kept.index(dim), 1),)) for dim in result_order), node.shape)


def _candidates(node: Node, factors: Sequence[Node], order: Sequence[int]) -> list[_Dims]:
    """The products of matrices that a contraction is: first the one whose result has an order of dimensions."""
    terms, axes = node.inputs[0], node.options["axes"]
    first, second = map(_dimensions, factors)
    wide = [dim for dim in range(terms.ndim) if not same(terms.shape[dim], 1)]
    if any((dim in first and dim in second) != (dim in axes) or dim not in first | second for dim in wide):
        return []
    kept = [dim for dim in range(terms.ndim) if dim not in axes]
    summed = [dim for dim in wide if dim in axes]
    ordered = [kept[i] for i in order if kept[i] in wide]
    groups = [(is_first, [*dims]) for is_first, dims in groupby(ordered, first.__contains__)]
    result = []
    if 2 <= len(groups) <= 3:
        *before, (is_left, rows), (_, columns) = groups
        result.append(_Dims([dim for _, dims in before for dim in dims], rows, columns, summed, is_left))
    sides = [[dim for dim in ordered if (dim in first) == is_first] for is_first in (True, False)]
    return [*result, _Dims([], sides[0], sides[1], summed, is_left=True)]


def _dimensions(factor: Node) -> set[int]:
    """The dimensions of a factor along which its elements differ."""
    if factor.operation != "view":
        return set(range(factor.ndim))
    return {dim for _, steps in factor.options["map"] for dim, _ in steps}


def _is_large(terms: Node, dims: _Dims) -> bool:
    """Whether a product of matrices is faster than a loop nest: a guess from the sizes of the traced call.

    Larger calls, for which the matrices would take much memory, get code of their own.
    """
    rows, columns, summed = (
        traced_product(terms.shape[dim] for dim in group) for group in (dims.rows, dims.columns, dims.summed)
    )
    return (
        min(rows, columns) >= MIN_MATRIX_ROWS
        and summed >= MIN_SUMMED
        and rows * columns * summed >= MIN_MULTIPLICATIONS
        and all(
            is_product_at_most_now([terms.shape[dim] for dim in matrix], MAX_MATRIX_ELEMENTS)
            for matrix in ((*dims.batch, *dims.rows, *dims.summed), (*dims.batch, *dims.columns, *dims.summed))
        )
    )


def _matrix(factor: Node, dims: _Dims, rows: list[int], columns: list[int]) -> Node:
    """A factor as a matrix of some dimensions by others, with those of the batch in front where it has them.

    It is the transpose of a matrix in memory where that is copied, or read, in longer runs.
    """
    own = _dimensions(factor)
    batch = [dim for dim in dims.batch if dim in own]
    is_transposed = _run_dimension(factor) in rows
    sides = (columns, rows) if is_transposed else (rows, columns)
    order = [*batch, *sides[0], *sides[1]]
    index_map = tuple((0, ((order.index(dim), 1),) if dim in order else ()) for dim in range(factor.ndim))
    shown = builder.view(factor, index_map, [factor.shape[dim] for dim in order])
    groups = ([batch] if batch else []) + [*sides]
    matrix = builder.reshape(shown, [symbolic_dims.product(factor.shape[dim] for dim in group) for group in groups])
    return matrix_transpose(matrix) if is_transposed else matrix


def _run_dimension(factor: Node) -> int:
    """The longest dimension of a factor along which elements are adjacent in memory; -1 if there is none."""
    if factor.operation != "view":
        return factor.ndim - 1
    entries = zip(factor.options["map"], factor.inputs[0].shape, strict=True)
    _, steps = next((entry for entry, extent in [*entries][::-1] if not same(extent, 1)), (0, ()))
    adjacent = [dim for dim, step in steps if same(step, 1)]
    return max(adjacent, key=lambda dim: symbolic_dims.value_of(factor.shape[dim]), default=-1)
