"""Sums of products of bfloat16 in float32, for range kernels: dot products, and columns of a matrix."""

from typing import Any

import numpy as np

from jitkernels.codegen.source_protocol import inlined, offset
from jitkernels.core import cpu_target
from jitkernels.microkernels.gemm.vnni_packed import has_instruction
from jitkernels.microkernels.gemv.bf16_dot import dot
from jitkernels.microkernels.narrow_int import widen_bfloat16

FLOAT32_SUM_PRODUCTS = 512
"""Products per float32 sum before it is added in double."""
PAIRS, WIDENED = "pairs", "widened"
"""The algorithms: VDPBF16PS, or operands widened to float32 by a shift, with fused multiply-adds."""
ACCUMULATORS_IN_MEMORY = 4096
"""Accumulators in memory at a time: they stay in the first-level cache."""


def algorithms() -> tuple[str, ...]:
    """List the algorithms of this machine, the static choice first."""
    return (PAIRS, WIDENED) if has_instruction("bfloat16", cpu_target.target()) else (WIDENED,)


def row_product(algorithm: str) -> Any:
    """Return the function ``(x, y, n)``: the sum over i < n of x[i] * y[i]."""
    return dot() if algorithm == PAIRS else widened_dot


@inlined("reassoc", "contract")
def widened_dot(x: Any, y: Any, n: int) -> Any:
    """Return the same sum without VDPBF16PS."""
    total = np.float64(0)
    for first in range(0, n, FLOAT32_SUM_PRODUCTS):
        part = np.float32(0)
        for i in range(first, min(first + FLOAT32_SUM_PRODUCTS, n)):
            part += widen_bfloat16(x[i]) * widen_bfloat16(y[i])
        total += np.float64(part)
    return np.float32(total)


@inlined("reassoc", "contract")
def add_rows(a: Any, stride: int, x: Any, n: int, sums: Any, count: int) -> None:
    """``sums[j] = sum over p < n of x[p] * a[p * stride + j]`` for j < count."""
    for j in range(count):
        sums[j] = np.float32(0)
    p = 0
    while p + 4 <= n:
        one, two, three, four = (
            widen_bfloat16(x[p]),
            widen_bfloat16(x[p + 1]),
            widen_bfloat16(x[p + 2]),
            widen_bfloat16(x[p + 3]),
        )
        first, second = offset(a, p * stride), offset(a, (p + 1) * stride)
        third, fourth = offset(a, (p + 2) * stride), offset(a, (p + 3) * stride)
        for j in range(count):
            left = one * widen_bfloat16(first[j]) + two * widen_bfloat16(second[j])
            sums[j] += left + (three * widen_bfloat16(third[j]) + four * widen_bfloat16(fourth[j]))
        p += 4
    while p < n:
        factor, row = widen_bfloat16(x[p]), offset(a, p * stride)
        for j in range(count):
            sums[j] += factor * widen_bfloat16(row[j])
        p += 1
