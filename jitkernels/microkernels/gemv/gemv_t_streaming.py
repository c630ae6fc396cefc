"""GEMV of a transposed matrix from memory: four rows at a time, with software prefetch of the next four.

Four rows share the loads and stores of their sums; but four rows side by side are four streams, which hardware
prefetchers follow worse than one. So the code prefetches one stream into the second-level cache: all that lies behind
these rows, or, where rows are taken in part, one of the next four rows during a quarter of these.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.source_protocol import IRFunction, inlined, offset
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.microkernels.gemv.gemv_n_streaming import GEMV_ROWS, PREFETCH_DISTANCE_BYTES

SUM_BYTES = 1 << 16
"""Bytes of sums per block, in the second-level cache; threads take blocks of their own."""
STEP_BYTES = 4 * CACHE_LINE_BYTES
"""Bytes of a row between two prefetches."""


def gemv_t_body(dtype: str, scale: float) -> Callable[..., None]:
    """Make the body ``y = a.T @ x + scale * y``; a scale of 0 does not read y."""
    element = dtypes.named(dtype)
    number: Any = element.numpy.type
    keeps, beta = scale != 0, number(scale)
    columns, add_rows = SUM_BYTES // element.size, add_scaled_rows(element.size, identity)

    def body(a: Any, x: Any, y: Any, m: int, n: int, begin: int, end: int) -> None:
        for left in range(begin, end, columns):
            width = min(columns, end - left)
            for i in range(left, left + width):
                y[i] = beta * y[i] if keeps else number(0)
            add_rows(offset(a, left), m, x, n, offset(y, left), width)

    return body


@inlined()
def identity(value: Any) -> Any:
    """Return `value`, which needs no conversion."""
    return value


def add_scaled_rows(size: int, read: Any) -> Any:
    """Make ``(a, stride, x, n, y, width)``: ``y[j] += sum over p < n of x[p] * a[p * stride + j]`` for j < width.

    Elements have `size` bytes; `read` converts them to numbers.
    """
    step, ahead, ask = STEP_BYTES // size, PREFETCH_DISTANCE_BYTES // size, _prefetch_bytes(GEMV_ROWS * STEP_BYTES)

    @inlined("reassoc", "contract")
    def add(a: Any, stride: int, x: Any, y: Any, begin: int, end: int) -> None:
        """Add the products of four rows."""
        second, third, fourth = offset(a, stride), offset(a, 2 * stride), offset(a, 3 * stride)
        for i in range(begin, end):
            low = read(a[i]) * read(x[0]) + read(second[i]) * read(x[1])
            high = read(third[i]) * read(x[2]) + read(fourth[i]) * read(x[3])
            y[i] += low + high

    @inlined("reassoc", "contract")
    def add_rows(a: Any, stride: int, x: Any, n: int, y: Any, width: int) -> None:
        quarter = width // (GEMV_ROWS * step) * step
        last = n - n % GEMV_ROWS
        for p in range(0, last, GEMV_ROWS):
            rows, factors = offset(a, p * stride), offset(x, p)
            done = 0
            if width == stride:
                behind = offset(rows, GEMV_ROWS * stride + ahead)
                while done + step <= width:
                    ask(offset(behind, GEMV_ROWS * done))
                    add(rows, stride, factors, y, done, done + step)
                    done += step
                ask(offset(behind, GEMV_ROWS * done))
            else:
                for r in range(GEMV_ROWS):
                    following = offset(rows, (GEMV_ROWS + r) * stride)
                    for at in range(0, quarter, step):
                        ask(offset(following, GEMV_ROWS * at))
                        add(rows, stride, factors, y, done, done + step)
                        done += step
            add(rows, stride, factors, y, done, width)
        for p in range(last, n):
            for i in range(width):
                y[i] += read(a[p * stride + i]) * read(x[p])

    return add_rows


def _prefetch_bytes(count: int) -> Any:
    """Make the function that prefetches so many bytes from an address on."""
    symbol = f"gemv_ask_{count}"
    prefetches = "".join(
        f"  %line{at} = getelementptr i8, ptr %begin, i64 {at}\n"
        f"  call void @llvm.prefetch.p0(ptr %line{at}, i32 0, i32 2, i32 1)\n"
        for at in range(0, count, CACHE_LINE_BYTES)
    )
    text = f"""declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @{symbol}(ptr %begin) alwaysinline nounwind {{
{prefetches}  ret void
}}
"""
    return IRFunction(symbol, "void", ("void*",), text)
