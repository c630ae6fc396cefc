"""Cost model of tiling the batch dimension: the bytes that stay in the caches, against the weights that are read again.

Over a whole batch, a layer stores its results to memory and the next one loads them; its weights it loads once. Row by
row, activations stay in the caches, and each row loads all weights again. Times of the layers of ResNet-50 and
SqueezeNet at batch 8 (Zen 4, 1 MB of L2) both ways fit 75 GB/s of loads, which hardware prefetches, and 15 GB/s of
stores, which load the lines first and write others back.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from jitkernels.compiler.ir.dim_bounds import traced_product
from jitkernels.compiler.ir.graph import Graph, Node, readers
from jitkernels.compiler.ir.symbolic_dims import Number, value_of
from jitkernels.compiler.schedule.batch_independence import RowOperands
from jitkernels.core import cpu_target

STORE_COST = 5
"""Bytes that are loaded in the time in which one is stored."""
CALL_COST = 1 << 17
"""Bytes that are loaded in the time that the call of a kernel for a row takes longer than its share of a large one."""
COSTED_OPERATIONS = frozenset({"kernel", "matmul"})


def profitable_runs(graph: Graph, region: Sequence[Node], rows: RowOperands, batch: Number) -> list[list[Node]]:
    """The runs of nodes that are faster row by row than over the whole batch; `region`: nodes in topological order.

    A run is a maximum subarray of what its kernels save, with the nodes around these that are no kernels. `rows`: of
    each node, the operands of which a row needs that row alone.
    """
    read, inside = readers(graph), set(region)
    local = {node for node in region if inside.issuperset(read[node])}.difference(graph.roots)
    nodes = [node for node in region if not _is_item(node)]  # these go with their kernels
    savings = [saved_bytes(node, rows[node], value_of(batch), local, read) for node in nodes]
    bounds: list[tuple[int, int]] = []
    waiting = [(0, len(nodes))]
    while waiting:
        first, last = waiting.pop()
        begin, end = _maximum_subarray(savings, first, last)
        if begin < end:
            begin, end = _widened(nodes, begin, end, first, last)
            bounds.append((begin, end))
            waiting += [(first, begin), (end, last)]
    chosen = [set(nodes[begin:end]) for begin, end in sorted(bounds)]
    runs = [[node for node in region if (node.inputs[0] if _is_item(node) else node) in run] for run in chosen]
    return [run for run in runs if sum(node.operation in COSTED_OPERATIONS for node in run) > 1]


def saved_bytes(
    node: Node, rows: Collection[int], count: int, local: Collection[Node], read: Mapping[Node, Sequence[Node]]
) -> int:
    """The loads that a kernel saves per row if arrays of `local`, which nothing else reads, stay in the caches."""
    if node.operation not in COSTED_OPERATIONS:
        return 0
    saved = -CALL_COST
    for i, operand in enumerate(node.inputs):
        if i not in rows:
            saved -= _bytes(operand)
        elif operand in local:
            saved += _in_memory(operand, count)
    results = read[node] if node.operation == "kernel" else [node]
    return saved + STORE_COST * sum(_in_memory(result, count) for result in results if result in local)


def _is_item(node: Node) -> bool:
    return node.operation == "item"


def _bytes(node: Node) -> int:
    return int(traced_product(node.shape) * np.dtype(node.dtype).itemsize)


def _in_memory(node: Node, count: int) -> int:
    """The bytes of a row of an array; 0 where all rows stay in L2."""
    whole = _bytes(node)
    return whole // count if whole >= cpu_target.l2_cache_bytes() else 0


def _maximum_subarray(values: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """The bounds of the part of `values` between two positions that has the largest sum; empty if none is positive."""
    best, total, begin, bounds = 0, 0, first, (first, first)
    for position in range(first, last):
        if total <= 0:
            total, begin = 0, position
        total += values[position]
        if total > best:
            best, bounds = total, (begin, position + 1)
    return bounds


def _widened(region: Sequence[Node], begin: int, end: int, first: int, last: int) -> tuple[int, int]:
    """The bounds of a run with the nodes up to the next kernels."""
    while begin > first and region[begin - 1].operation not in COSTED_OPERATIONS:
        begin -= 1
    while end < last and region[end].operation not in COSTED_OPERATIONS:
        end += 1
    return begin, end
