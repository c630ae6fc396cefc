"""MATMUL of bfloat16: register tiles of VDPBF16PS, or the float32 GEMM of operands widened to float32.

A C of one row or column takes the kernels of GEMV, which read the long operand in place.
"""

from typing import Any

import numpy as np

from jitkernels.attrs.matmul import MatMulAttr
from jitkernels.attrs.schema.registry import Variant
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import Range, inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.gemm_arguments import GemmExtents, Operands
from jitkernels.microkernels.gemm.gemm_heuristics import blocking
from jitkernels.microkernels.gemm.packed_panels import PackedGemm, packed_kernel
from jitkernels.microkernels.gemm.thresholds import MIN_PARALLEL_STATIC_MULTIPLY_ADDS
from jitkernels.microkernels.gemm.vnni_packed import Narrow, fits, has_instruction, vnni_kernel
from jitkernels.microkernels.gemv.bf16_gemv import beta_epilogue
from jitkernels.microkernels.gemv.bf16_sums import ACCUMULATORS_IN_MEMORY, WIDENED, add_rows, algorithms, row_product
from jitkernels.microkernels.narrow_int import widen_bfloat16
from jitkernels.microkernels.range_kernel_of import range_kernel_of
from jitkernels.runtime.loading import loader

TILES = "tiles"
FLOAT32_ROWS_PER_PASS = 256
"""Rows of C that one pass of the float32 GEMM computes."""
THIN_BLOCK = 64
"""Least number of rows or columns of a one-column or one-row C per thread."""


def product_of(attr: MatMulAttr) -> Narrow:
    """Return the element types and the layout of B that the tiles multiply."""
    return Narrow("bfloat16", "bfloat16", "bfloat16", attr.trans_a, attr.trans_b, beta=attr.beta)


def variants(attr: MatMulAttr) -> list[Variant]:
    """List the variants for a shape, the static choice first."""
    work = attr.m * attr.n * attr.k
    if 1 in (attr.m, attr.n):
        names = algorithms() if _lies_along(attr) else (WIDENED,)
    elif has_instruction("bfloat16", cpu_target.target()) and fits(product_of(attr), attr.k):
        names = (TILES, WIDENED)
    else:
        names = (WIDENED,)
    shares = (False, True) if work >= 4 * MIN_PARALLEL_STATIC_MULTIPLY_ADDS and max(attr.m, attr.n) >= 128 else (False,)
    return [{"algorithm": name, "parallel": parallel} for parallel in shares for name in names]


def _lies_along(attr: MatMulAttr) -> bool:
    """Return whether both operands of a one-row or one-column C are contiguous along k."""
    return not attr.trans_a if attr.n == 1 else attr.trans_b


def bfloat16_nest(attr: MatMulAttr, algorithm: str, parallel: bool) -> RangeKernel:
    """Make the range kernel ``(a, b, c, m, n, k)``."""
    if 1 in (attr.m, attr.n):
        return _thin(attr, algorithm, parallel)
    if algorithm == TILES:
        by_columns = parallel and attr.n >= attr.m
        signature, product = attr.signature(), product_of(attr)
        return vnni_kernel("matmul_bfloat16", signature, product, by_columns=by_columns, parallel=parallel)
    return _widened(attr, parallel)


def _thin(attr: MatMulAttr, algorithm: str, parallel: bool) -> RangeKernel:
    """Make the body for one row or column: dot products of rows, a sum of scaled rows, or single elements of C."""
    of_row, finished = row_product(algorithm), beta_epilogue(attr.beta)
    is_column, along, trans_a, trans_b = attr.n == 1, _lies_along(attr), attr.trans_a, attr.trans_b

    @inlined("reassoc", "contract")
    def each(operands: Operands, extents: GemmExtents, part: Range) -> None:
        a, b, c, m, n, k = operands.a, operands.b, operands.c, extents.m, extents.n, extents.k
        for i in range(part.begin if is_column else 0, part.end if is_column else m):
            for j in range(0 if is_column else part.begin, n if is_column else part.end):
                total = np.float32(0)
                for p in range(k):
                    left = widen_bfloat16(a[p * m + i if trans_a else i * k + p])
                    total += left * widen_bfloat16(b[j * k + p if trans_b else p * n + j])
                c[i * n + j] = finished(total, c, i * n + j)

    def dots(operands: Operands, extents: GemmExtents, part: Range) -> None:
        matrix, vector = (operands.a, operands.b) if is_column else (operands.b, operands.a)
        c, k = operands.c, extents.k
        if (extents.n if is_column else extents.m) != 1:
            each(operands, extents, part)
            return
        for row in range(part.begin, part.end):
            c[row] = finished(of_row(offset(matrix, row * k), vector, k), c, row)

    def sums(operands: Operands, extents: GemmExtents, workspace: Any, part: Range) -> None:
        matrix, vector = (operands.a, operands.b) if is_column else (operands.b, operands.a)
        c, k = operands.c, extents.k
        if (extents.n if is_column else extents.m) != 1:
            each(operands, extents, part)
            return
        stride = extents.m if is_column else extents.n
        for left in range(part.begin, part.end, ACCUMULATORS_IN_MEMORY):
            count = min(ACCUMULATORS_IN_MEMORY, part.end - left)
            add_rows(offset(matrix, left), stride, vector, k, workspace, count)
            for j in range(count):
                c[left + j] = finished(workspace[j], c, left + j)

    return range_kernel_of(
        attr,
        f"matmul_bfloat16_{algorithm}_{'column' if is_column else 'row'}",
        dots if along else sums,
        extent="m" if is_column else "n",
        block=THIN_BLOCK,
        parallel=parallel,
        workspace=0 if along else 4 * ACCUMULATORS_IN_MEMORY,
        workspace_dtype="float32",
    )


def _widened(attr: MatMulAttr, parallel: bool) -> RangeKernel:
    """Make the body that widens both operands to float32 and multiplies them, some rows of C at a time."""
    target = cpu_target.target()
    trans_a, finished = attr.trans_a, beta_epilogue(attr.beta)
    wide = packed_kernel(
        PackedGemm(
            target.lanes("float32"), blocking("float32", target), "float32", trans_a, attr.trans_b, 0.0, split="rows"
        ),
        parallel=False,
    )
    product = loader.range_of(wide, wide.arguments)

    def needed(n: int, k: int) -> int:
        return 4 * (k * n + FLOAT32_ROWS_PER_PASS * (k + n))

    def body(operands: Operands, extents: GemmExtents, workspace: Any, part: Range) -> Any:
        a, b, c, m, n, k = operands.a, operands.b, operands.c, extents.m, extents.n, extents.k
        rows_of_a, sums = offset(workspace, k * n), offset(workspace, k * n + FLOAT32_ROWS_PER_PASS * k)
        for i in range(k * n):
            workspace[i] = widen_bfloat16(b[i])
        for top in range(part.begin, part.end, FLOAT32_ROWS_PER_PASS):
            rows = min(FLOAT32_ROWS_PER_PASS, part.end - top)
            if trans_a:
                for p in range(k):
                    for r in range(rows):
                        rows_of_a[p * rows + r] = widen_bfloat16(a[p * m + top + r])
            else:
                for i in range(rows * k):
                    rows_of_a[i] = widen_bfloat16(a[top * k + i])
            status = product(rows_of_a, workspace, sums, rows, n, k, 0, rows)
            if status != 0:
                return status
            for i in range(rows * n):
                c[top * n + i] = finished(sums[i], c, top * n + i)
        return 0

    return range_kernel_of(
        attr,
        "matmul_bfloat16_widened",
        body,
        extent="m",
        block=FLOAT32_ROWS_PER_PASS // 2,
        parallel=parallel,
        workspace=needed,
        workspace_dtype="float32",
    )
