"""RMS_NORM of bfloat16, in float32: row by row, or blocks of columns where inner dimensions follow the axis."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.normalization import RmsNormAttr
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.microkernels.gemv.bf16_sums import row_product
from jitkernels.microkernels.narrow_int import round_to_bfloat16, widen_bfloat16
from jitkernels.microkernels.range_kernel_of import range_kernel_of

BLOCK_SUM_COLUMNS = 1024
"""Columns per block of sums."""


class RmsNormArrays(NamedTuple):
    """The arrays; scale may be absent."""

    x: Any
    scale: Any
    y: Any


def rms_norm_kernel(attr: RmsNormAttr, algorithm: str, block: int, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(x, [scale,] y, rows, n, remain, eps)``."""
    is_affine, of_row = attr.affine, row_product(algorithm)
    one = np.float32(1)

    @inlined("contract")
    def whole(x: Any, scale: Any, y: Any, n: int, eps: Any) -> None:
        factor = one / np.sqrt(of_row(x, x, n) / np.float32(n) + eps)
        for j in range(n):
            value = widen_bfloat16(x[j]) * factor
            y[j] = round_to_bfloat16(value * widen_bfloat16(scale[j]) if is_affine else value)

    @inlined("contract")
    def columns(x: Any, scale: Any, y: Any, n: int, remain: int, eps: Any, sums: Any) -> None:
        for left in range(0, remain, BLOCK_SUM_COLUMNS):
            count = min(BLOCK_SUM_COLUMNS, remain - left)
            for k in range(count):
                sums[k] = 0.0
            for j in range(n):
                row = offset(x, j * remain + left)
                for k in range(count):
                    sums[k] += np.float64(widen_bfloat16(row[k])) * np.float64(widen_bfloat16(row[k]))
            for k in range(count):
                sums[k] = np.float64(one / np.sqrt(np.float32(sums[k]) / np.float32(n) + eps))
            for j in range(n):
                row, to = offset(x, j * remain + left), offset(y, j * remain + left)
                weight = widen_bfloat16(scale[j]) if is_affine else one
                for k in range(count):
                    to[k] = round_to_bfloat16(widen_bfloat16(row[k]) * np.float32(sums[k]) * weight)

    def body(arrays: RmsNormArrays, n: int, remain: int, eps: Any, workspace: Any, part: Range) -> None:
        least, scale = np.float32(eps[0]), arrays.x if arrays.scale is None else arrays.scale
        for row in range(part.begin, part.end):
            at = row * n * remain
            if remain == 1:
                whole(offset(arrays.x, at), scale, offset(arrays.y, at), n, least)
            else:
                columns(offset(arrays.x, at), scale, offset(arrays.y, at), n, remain, least, workspace)

    return range_kernel_of(
        attr,
        f"rms_norm_bfloat16_{algorithm}",
        body,
        extent="rows",
        block=block if parallel else 1,
        parallel=parallel,
        workspace=8 * BLOCK_SUM_COLUMNS,
        workspace_dtype="float64",
        flags=(),
        reads_first=True,
    )
