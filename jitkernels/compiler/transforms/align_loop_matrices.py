"""Alignment of loop-invariant matrices: copy a matrix that a loop multiplies with vectors to a cache line boundary.

NumPy's arrays begin anywhere in a cache line. Vectors of a matrix then straddle two lines each, and a matrix-vector
product, which is bound by loads, takes up to a third longer. A copy costs about two such products; it pays where trip
counts are large, rows are full lines, and the matrix stays in the caches.
"""

from collections.abc import Iterable

from jitkernels.codegen.python.types import NUMBERS
from jitkernels.compiler.ir import builder, symbolic_dims
from jitkernels.compiler.ir.graph import Graph, Node, transformed
from jitkernels.compiler.ir.matrix_ops import is_dense
from jitkernels.compiler.ir.region_memory import is_control_flow, updated_operands
from jitkernels.compiler.ir.regions import regions_of
from jitkernels.compiler.ir.symbolic_dims import Extent, Number, same
from jitkernels.compiler.transforms.trip_count import trip_count_of
from jitkernels.core.cpu_target import CACHE_LINE_BYTES

MIN_ALIGNED_BYTES, MAX_ALIGNED_BYTES = 1 << 10, 1 << 19
MIN_ALIGNED_TRIP_COUNT = 32


def align_loop_matrices(graph: Graph) -> Graph:
    """Replace matrix operands of loops by aligned copies where that pays."""
    copies: dict[Node, Node] = {}

    def rule(node: Node) -> Node:
        if node.operation != "loop":
            return node
        inputs = list(node.inputs)
        written = set(updated_operands(node))
        for index, one in enumerate(inputs):
            if index in written or one.operation != "input" or one.ndim != 2 or not is_dense(one):
                continue
            if _products(node, {index}) >= MIN_ALIGNED_TRIP_COUNT and _pays_off(one):
                inputs[index] = copies.setdefault(one, builder.copy(one))
        is_unchanged = all(operand is other for operand, other in zip(inputs, node.inputs, strict=True))
        return node if is_unchanged else node.with_inputs(inputs)

    return transformed(graph, rule)


def _products(flow: Node, indices: Iterable[int]) -> int:
    """The approximate number of products of a flow's operands with vectors."""
    first = 3 if flow.operation == "loop" and flow.options["counts"] else 1 if flow.operation == "branch" else 0
    shift = 1 if first == 3 else 0
    total = 0
    for region in regions_of(flow):
        matrices = {region.inputs[index - first + shift] for index in indices if index >= first}
        for node in region:
            if is_control_flow(node):
                total += _products(node, [i for i, operand in enumerate(node.inputs) if operand in matrices])
            elif node.operation == "matmul" and any(same(extent, 1) for extent in node.shape):
                total += sum(operand in matrices or _is_transpose_of(operand, matrices) for operand in node.inputs)
    return total * (symbolic_dims.value_of(trip_count_of(flow)) if flow.operation == "loop" else 1)


def _is_transpose_of(node: Node, matrices: set[Node]) -> bool:
    return node.operation == "view" and node.inputs[0] in matrices and node.ndim == 2


def _pays_off(node: Node) -> bool:
    """Return whether a copy pays by size and row length; guards specialize the code on it."""
    size = NUMBERS[node.dtype].size
    nbytes = symbolic_dims.product(node.shape) * size
    row_bytes: Number = node.shape[-1] * size
    conditions = (
        (nbytes - MIN_ALIGNED_BYTES, ">="),
        (MAX_ALIGNED_BYTES - nbytes, ">="),
        (row_bytes % CACHE_LINE_BYTES, "=="),
    )
    return all(_holds(extent, sign) for extent, sign in conditions)


def _holds(extent: Number, sign: str) -> bool:
    now = symbolic_dims.value_of(extent)
    holds = now == 0 if sign == "==" else now >= 0
    if isinstance(extent, Extent):
        if sign == "==":
            extent.guard(extent, "==" if holds else "!=", is_choice=True)
        else:
            extent.guard(extent if holds else -1 - extent, ">=", is_choice=True)
    return holds
