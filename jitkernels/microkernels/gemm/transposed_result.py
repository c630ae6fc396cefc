"""GEMM by the transposed result: ``C.T = op(B).T @ A`` for a transposed A and a narrow C.

A is stored as [k, m], so vectors of it run along the long side of C, where a vector along n would be mostly empty. The
tile writes the transposed result to the workspace, from where it is added, with beta, to C.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.microkernels.gemm.direct_static import SmallShape, tile_columns
from jitkernels.microkernels.gemm.gemm_arguments import NAMES, matmul_arguments
from jitkernels.microkernels.gemm.microkernel import element_size


def transposed_result_kernel(shape: SmallShape) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)``; ``shape`` describes the transposed product."""
    inner, border = tile_columns(replace(shape, beta=0.0))
    narrow, long, steps, depth, width = shape.m, shape.n, shape.k, shape.depth, shape.width
    whole = long - long % width
    along = narrow if shape.trans_a else 1
    has_tail, last, by_rows_of_c = whole < long, max(steps, 1), shape.split != ""
    overwrites, beta = shape.beta == 0.0, np.dtype(shape.dtype).type(shape.beta)

    def body(a: Any, b: Any, c: Any, workspace: Any, begin: int, end: int) -> None:
        left, right = (begin, end) if by_rows_of_c else (0, long)
        for p in range(0, last, depth):
            deep = min(depth, steps - p)
            first = 1 if p == 0 else 0
            for j in range(left, min(right, whole), width):
                inner(b, p * along, a, p * long + j, workspace, j, deep, first, 0, narrow)
            if has_tail and right > whole:
                border(b, p * along, a, p * long + whole, workspace, whole, deep, first, 0, narrow)
        for i in range(left, right):
            for j in range(narrow):
                value = workspace[j * long + i]
                c[i * narrow + j] = value if overwrites else value + beta * c[i * narrow + j]

    size = element_size(shape.dtype)
    return RangeKernel(
        exact=True,
        name="matmul_transposed_result",
        arguments=matmul_arguments(shape.dtype),
        body=body,
        extent=3,
        block=width if by_rows_of_c else long,
        parallel=by_rows_of_c,
        workspace=narrow * long * size,
        workspace_dtype=shape.dtype,
        vector_bytes=shape.lanes * size,
        names=NAMES,
    )
