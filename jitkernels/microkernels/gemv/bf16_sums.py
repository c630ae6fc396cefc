"""Sums of products of bfloat16 in float32, for loop nests: dot products, and columns of a matrix."""

from typing import Any

import numpy as np

from jitkernels import machine
from jitkernels.loops.bfloat16_dot import dot
from jitkernels.loops.matmul_grouped import has_instruction
from jitkernels.loops.narrow import widened
from jitkernels.native.source import inlined, offset

PART = 512
"""Products that are added up in float32 before they are joined in double."""
PAIRS, WIDENED = "pairs", "widened"
"""By the processor's dot products of pairs; as float32 made of the bits, with fused products."""
COLUMNS = 4096
"""Sums that are kept at a time: they stay in the first-level cache."""


def algorithms() -> tuple[str, ...]:
    """What there is here, the static choice first."""
    return (PAIRS, WIDENED) if has_instruction("bfloat16", machine.target()) else (WIDENED,)


def row_product(algorithm: str) -> Any:
    """``(x, y, n)``: the sum over i < n of x[i] * y[i]."""
    return dot() if algorithm == PAIRS else widened_dot


@inlined("reassoc", "contract")
def widened_dot(x: Any, y: Any, n: int) -> Any:
    """The same without an instruction for it."""
    total = np.float64(0)
    for first in range(0, n, PART):
        part = np.float32(0)
        for i in range(first, min(first + PART, n)):
            part += widened(x[i]) * widened(y[i])
        total += np.float64(part)
    return np.float32(total)


@inlined("reassoc", "contract")
def add_rows(a: Any, stride: int, x: Any, n: int, sums: Any, count: int) -> None:
    """``sums[j] = sum over p < n of x[p] * a[p * stride + j]`` for j < count."""
    for j in range(count):
        sums[j] = np.float32(0)
    p = 0
    while p + 4 <= n:
        one, two, three, four = widened(x[p]), widened(x[p + 1]), widened(x[p + 2]), widened(x[p + 3])
        first, second = offset(a, p * stride), offset(a, (p + 1) * stride)
        third, fourth = offset(a, (p + 2) * stride), offset(a, (p + 3) * stride)
        for j in range(count):
            left = one * widened(first[j]) + two * widened(second[j])
            sums[j] += left + (three * widened(third[j]) + four * widened(fourth[j]))
        p += 4
    while p < n:
        factor, row = widened(x[p]), offset(a, p * stride)
        for j in range(count):
            sums[j] += factor * widened(row[j])
        p += 1
