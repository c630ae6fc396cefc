"""TRANSPOSE, GATHER and SCATTER_ADD by numba."""

from typing import Any

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.transpose_gather_scatter import GatherAttr, ScatterAddAttr, TransposeAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.gen.transpose_gather_scatter import check_ids
from jitkernels.more.numba.numba_kernel import RowArguments, numba_kernel, threads_along, usable

TILE = 16
"""Rows and columns that are moved together: a cache line of each is used while it is there."""


@implements(TransposeAttr, can_be_used=usable, variants=threads_along("batch"))
def transpose(attr: TransposeAttr, parallel: bool = False) -> RangeKernel:
    def body(x: Any, y: Any, rows: int, n: int, begin: int, end: int) -> None:
        for b in range(begin, end):
            base = b * rows * n
            for top in range(0, rows, TILE):
                for left in range(0, n, TILE):
                    for j in range(left, min(left + TILE, n)):
                        for i in range(top, min(top + TILE, rows)):
                            y[base + j * rows + i] = x[base + i * n + j]

    return numba_kernel(attr, body, "batch", parallel=parallel)


@implements(GatherAttr, can_be_used=usable, variants=threads_along("count"))
def gather(attr: GatherAttr, parallel: bool = False) -> RangeKernel:
    def body(table: Any, ids: Any, y: Any, n: int, begin: int, end: int) -> None:
        for i in range(begin, end):
            row = ids[i]
            for j in range(n):
                y[i * n + j] = table[row * n + j]

    return numba_kernel(attr, body, "count", check=check_ids, parallel=parallel)


@implements(ScatterAddAttr, can_be_used=usable)
def scatter_add(attr: ScatterAddAttr) -> RangeKernel:
    def body(table: Any, ids: Any, x: Any, y: Any, sizes: RowArguments, begin: int, end: int) -> None:
        for i in range(sizes.table_rows):
            for j in range(begin, end):
                y[i * sizes.n + j] = table[i * sizes.n + j]
        for s in range(sizes.count):
            row = ids[s]
            for j in range(begin, end):
                y[row * sizes.n + j] += x[s * sizes.n + j]

    return numba_kernel(attr, body, "n", check=check_ids, in_place=True)
