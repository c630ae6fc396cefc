"""RMS_NORM of bfloat16, in float32: row by row, or blocks of columns where inner dimensions follow the axis."""

from typing import Any

import numpy as np

from jitkernels.attrs.normalization import RmsNormAttr
from jitkernels.codegen.range_kernel import LoopNest
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.microkernels.gemv.bf16_sums import row_product
from jitkernels.microkernels.narrow_int import narrowed, widened

COLUMNS = 1024
"""Columns per block of sums."""


def rms_norm_nest(attr: RmsNormAttr, algorithm: str, block: int, parallel: bool) -> LoopNest:
    """Make the loop nest ``(x, [scale,] y, rows, n, remain, eps)``."""
    is_affine, of_row = attr.affine, row_product(algorithm)
    one = np.float32(1)

    @inlined("contract")
    def whole(x: Any, scale: Any, y: Any, n: int, eps: Any) -> None:
        factor = one / np.sqrt(of_row(x, x, n) / np.float32(n) + eps)
        for j in range(n):
            value = widened(x[j]) * factor
            y[j] = narrowed(value * widened(scale[j]) if is_affine else value)

    @inlined("contract")
    def columns(x: Any, scale: Any, y: Any, n: int, remain: int, eps: Any, sums: Any) -> None:
        for left in range(0, remain, COLUMNS):
            count = min(COLUMNS, remain - left)
            for k in range(count):
                sums[k] = 0.0
            for j in range(n):
                row = offset(x, j * remain + left)
                for k in range(count):
                    sums[k] += np.float64(widened(row[k])) * np.float64(widened(row[k]))
            for k in range(count):
                sums[k] = np.float64(one / np.sqrt(np.float32(sums[k]) / np.float32(n) + eps))
            for j in range(n):
                row, to = offset(x, j * remain + left), offset(y, j * remain + left)
                weight = widened(scale[j]) if is_affine else one
                for k in range(count):
                    to[k] = narrowed(widened(row[k]) * np.float32(sums[k]) * weight)

    @inlined()
    def each(x: Any, scale: Any, y: Any, n: int, remain: int, eps: Any, sums: Any, begin: int, end: int) -> None:
        for row in range(begin, end):
            at = row * n * remain
            if remain == 1:
                whole(offset(x, at), scale, offset(y, at), n, eps)
            else:
                columns(offset(x, at), scale, offset(y, at), n, remain, eps, sums)

    def affine(
        x: Any, scale: Any, y: Any, rows: int, n: int, remain: int, eps: Any, sums: Any, begin: int, end: int
    ) -> None:
        each(x, scale, y, n, remain, np.float32(eps[0]), sums, begin, end)

    def plain(x: Any, y: Any, rows: int, n: int, remain: int, eps: Any, sums: Any, begin: int, end: int) -> None:
        each(x, x, y, n, remain, np.float32(eps[0]), sums, begin, end)

    signature = attr.signature()
    return LoopNest(
        f"rms_norm_bfloat16_{algorithm}",
        signature.c_arguments,
        affine if is_affine else plain,
        extent=signature.index("rows"),
        block=block if parallel else 1,
        parallel=parallel,
        workspace=8 * COLUMNS,
        workspace_dtype="float64",
        flags=(),
        reads_first=True,
    )
