"""Generated MATMUL_INT8: register tiles of VPDPBUSD where the processor has it, else autovectorized loops."""

from typing import Any, NamedTuple

import numpy as np

from jitkernels.attrs.matmul_int8 import MatMulInt8Attr
from jitkernels.attrs.schema.registry import Variant, implements
from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.thresholds import MIN_PARALLEL_STATIC_MULTIPLY_ADDS
from jitkernels.microkernels.gemm.vnni_packed import Narrow, fits, has_instruction, vnni_kernel
from jitkernels.microkernels.range_kernel_of import range_kernel_of

HALF_MIN_THREAD_ROWS = 8
"""Half of the least number of rows per thread, of the loops."""
SUM_COLUMNS = 512
"""Columns per block of sums, which stay in the first-level cache."""


def variants(attr: MatMulInt8Attr) -> list[Variant]:
    """List tiles before loops, unless there is a single row; parallel where there is work for two threads."""
    work = attr.m * attr.n * attr.k
    shares = (True, False) if work >= 4 * MIN_PARALLEL_STATIC_MULTIPLY_ADDS and max(attr.m, attr.n) >= 128 else (False,)
    tiled = has_instruction("int8", cpu_target.target()) and fits(_product(attr), attr.k)
    names = ["tiles", "loops"] if attr.m > 1 else ["loops", "tiles"]
    return [
        {"algorithm": name, "parallel": parallel} for name in names if name == "loops" or tiled for parallel in shares
    ]


def _product(attr: MatMulInt8Attr) -> Narrow:
    return Narrow(
        attr.a_dtype, "int8", attr.dtype if attr.scaled else "int32", trans_b=attr.trans_b, scaled=attr.scaled
    )


@implements(MatMulInt8Attr, variants=variants)
def matmul_int8(attr: MatMulInt8Attr, algorithm: str = "loops", parallel: bool = False) -> RangeKernel:
    signature = attr.signature()
    if algorithm == "tiles":
        by_columns = parallel and attr.n >= attr.m
        return vnni_kernel("matmul_int8", signature, _product(attr), by_columns=by_columns, parallel=parallel)
    return range_kernel_of(
        attr,
        "matmul_int8_loops",
        _loops(attr),
        extent="m",
        block=HALF_MIN_THREAD_ROWS,
        parallel=parallel and attr.m >= 4 * HALF_MIN_THREAD_ROWS,
        flags=(),  # without contraction: products with scales are rounded as written
        workspace=4 * SUM_COLUMNS,
        workspace_dtype="int32",
    )


class Int8Arrays(NamedTuple):
    """The arrays; the scales may be None."""

    a: Any
    b: Any
    a_scale: Any
    b_scale: Any
    c: Any


def _loops(attr: MatMulInt8Attr) -> Any:
    trans_b = attr.trans_b
    number = np.dtype(attr.dtype).type
    zero = np.int32(0)

    @inlined()
    def sums(a: Any, b: Any, n: int, k: int, j: int, width: int, totals: Any) -> None:
        """Compute the sums of some columns of a row."""
        if trans_b:
            for i in range(width):
                total = zero
                for p in range(k):
                    total += np.int32(a[p]) * np.int32(b[(j + i) * k + p])
                totals[i] = total
        else:
            for i in range(width):
                totals[i] = zero
            for p in range(k):
                factor = np.int32(a[p])
                for i in range(width):
                    totals[i] += factor * np.int32(b[p * n + j + i])

    def body(arrays: Int8Arrays, n: int, k: int, workspace: Any, begin: int, end: int) -> None:
        for row in range(begin, end):
            for j in range(0, n, SUM_COLUMNS):
                width = min(SUM_COLUMNS, n - j)
                sums(offset(arrays.a, row * k), arrays.b, n, k, j, width, workspace)
                for i in range(width):
                    at = row * n + j + i
                    if arrays.a_scale is None:
                        arrays.c[at] = workspace[i]
                    else:
                        arrays.c[at] = number(workspace[i]) * (arrays.a_scale[row] * arrays.b_scale[j + i])

    return body
