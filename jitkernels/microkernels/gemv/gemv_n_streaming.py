"""GEMV of a matrix from memory: four rows at a time, with software prefetch of the next four in memory order.

Four sums use each load of the vector four times; but four rows side by side are four streams, which hardware
prefetchers follow worse than one. So the code prefetches one stream into the second-level cache: what lies behind these
rows.
"""

from collections.abc import Callable
from typing import Any

from jitkernels.codegen.source_protocol import IRFunction, inlined, offset
from jitkernels.core import dtypes
from jitkernels.core.cpu_target import CACHE_LINE_BYTES, Target

ABREAST = "abreast"
"""Name of the algorithm."""
GEMV_ROWS, ROW_CHAINS = 4, 2
"""Rows per pass, and accumulators per row."""
PREFETCH_DISTANCE_BYTES = 4096
"""Prefetch distance in bytes beyond the next rows: about what memory delivers in one latency."""


def gemv_n_body(dtype: str, scale: float, target: Target) -> Callable[..., None]:
    """Make the body ``y = a @ x + scale * y`` with a workspace of GEMV_ROWS numbers; a scale of 0 reads no y."""
    number: Any = dtypes.named(dtype).numpy.type
    keeps, beta = scale != 0, number(scale)
    lanes = target.lanes(dtype)
    sums: Any = _sums(dtype, lanes)
    step = ROW_CHAINS * lanes

    @inlined("reassoc", "contract")
    def product(a: Any, x: Any, begin: int, end: int) -> Any:
        total = number(0)
        for i in range(begin, end):
            total += a[i] * x[i]
        return total

    def body(a: Any, x: Any, y: Any, n: int, workspace: Any, begin: int, end: int) -> None:
        whole = n - n % step
        last = end - (end - begin) % GEMV_ROWS
        for first in range(begin, last, GEMV_ROWS):
            sums(offset(a, first * n), x, workspace, n, whole)
            for r in range(GEMV_ROWS):
                row = first + r
                total = workspace[r] + product(offset(a, row * n), x, whole, n)
                y[row] = total + beta * y[row] if keeps else total
        for row in range(last, end):
            total = product(offset(a, row * n), x, 0, n)
            y[row] = total + beta * y[row] if keeps else total

    return body


def _sums(dtype: str, lanes: int) -> IRFunction:
    """Make ``(a, x, sums, n, whole)``: products of GEMV_ROWS rows of n and x, over the first `whole` elements."""
    element = dtypes.named(dtype)
    number, size = element.llvm, element.size
    vector, kind = f"<{lanes} x {number}>", f"v{lanes}f{8 * size}"
    symbol, step = f"gemv_{GEMV_ROWS}rows_{dtype}_{lanes}", ROW_CHAINS * lanes
    rows = "".join(
        f"  %by{r} = mul nsw i64 %n, {r}\n  %row{r} = getelementptr {number}, ptr %a, i64 %by{r}\n"
        for r in range(GEMV_ROWS)
    )
    text = f"""declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare {vector} @llvm.fmuladd.{kind}({vector}, {vector}, {vector})
declare {number} @llvm.vector.reduce.fadd.{kind}({number}, {vector})
define void @{symbol}(ptr %a, ptr %x, ptr %sums, i64 %n, i64 %whole) noinline nounwind {{
start:
{rows}  %rows = mul nsw i64 %n, {GEMV_ROWS * size}
  %behind = add nsw i64 %rows, {PREFETCH_DISTANCE_BYTES}
  %some = icmp sgt i64 %whole, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %start ], [ %further, %loop ]
{_accumulators("s", vector)}  %taken = mul nsw i64 %i, {GEMV_ROWS * size}
  %place = add nsw i64 %behind, %taken
  %next = getelementptr i8, ptr %a, i64 %place
{_prefetches(step * size)}{_multiply_add(dtype, lanes)}  %further = add nuw nsw i64 %i, {step}
  %more = icmp slt i64 %further, %whole
  br i1 %more, label %loop, label %done, !llvm.loop !0
done:
{_accumulators("u", vector)}{_store_sums(dtype, lanes)}  ret void
}}
!0 = distinct !{{!0, !1}}
!1 = !{{!"llvm.loop.unroll.disable"}}
"""
    pointer = f"{dtype}*"
    return IRFunction(symbol, "void", (pointer, pointer, pointer, "int64", "int64"), text)


def _accumulators(name: str, vector: str) -> str:
    """Write the phis of the sums of each row and chain, of the loop or behind it: ``%name{row}.{chain}``."""
    return "".join(
        f"  %{name}{r}.{c} = phi {vector} [ zeroinitializer, %start ], [ %t{r}.{c}, %loop ]\n"
        for r in range(GEMV_ROWS)
        for c in range(ROW_CHAINS)
    )


def _prefetches(row_bytes: int) -> str:
    """Write the prefetches of what one iteration reads of all rows, `row_bytes` of each, from `%next` on."""
    return "".join(
        f"  %line{at} = getelementptr i8, ptr %next, i64 {at}\n"
        f"  call void @llvm.prefetch.p0(ptr %line{at}, i32 0, i32 2, i32 1)\n"
        for at in range(0, GEMV_ROWS * row_bytes, CACHE_LINE_BYTES)
    )


def _multiply_add(dtype: str, lanes: int) -> str:
    """Write the products of the vectors at `%i` of each row and of x, added to the accumulators."""
    element = dtypes.named(dtype)
    number, size = element.llvm, element.size
    vector, kind = f"<{lanes} x {number}>", f"v{lanes}f{8 * size}"
    indices = "".join(f"  %i{c} = add nuw nsw i64 %i, {c * lanes}\n" for c in range(ROW_CHAINS))
    factors = "".join(
        f"  %x{c}.at = getelementptr {number}, ptr %x, i64 %i{c}\n  %x{c} = load {vector}, ptr %x{c}.at, align {size}\n"
        for c in range(ROW_CHAINS)
    )
    products = "".join(
        f"  %a{r}.{c}.at = getelementptr {number}, ptr %row{r}, i64 %i{c}\n"
        f"  %a{r}.{c} = load {vector}, ptr %a{r}.{c}.at, align {size}\n"
        f"  %t{r}.{c} = call {vector} @llvm.fmuladd.{kind}({vector} %a{r}.{c}, {vector} %x{c}, {vector} %s{r}.{c})\n"
        for r in range(GEMV_ROWS)
        for c in range(ROW_CHAINS)
    )
    return indices + factors + products


def _store_sums(dtype: str, lanes: int) -> str:
    """Write the reduction of the accumulators of each row, and the store of its sum."""
    element = dtypes.named(dtype)
    number, size = element.llvm, element.size
    vector, kind = f"<{lanes} x {number}>", f"v{lanes}f{8 * size}"
    return "".join(
        f"  %both{r} = fadd {vector} %u{r}.0, %u{r}.1\n"
        f"  %sum{r} = call reassoc {number} @llvm.vector.reduce.fadd.{kind}({number} 0.0, {vector} %both{r})\n"
        f"  %to{r} = getelementptr {number}, ptr %sums, i64 {r}\n"
        f"  store {number} %sum{r}, ptr %to{r}, align {size}\n"
        for r in range(GEMV_ROWS)
    )
