"""Peak rates of this machine: fused multiply-adds in registers, and memory bandwidth.

Each is measured interleaved with the kernels compared with it, by loops that do nothing else.
"""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jitkernels.codegen.range_kernel import RangeKernel
from jitkernels.core import cpu_target, dtypes
from jitkernels.core.cpu_target import CACHE_LINE_BYTES
from jitkernels.runtime.loading.loader import address_of
from jitkernels.tuning.timer import measure

FMA_CHAINS, ITERATIONS = 12, 20000
"""Independent accumulators, enough to hide the latency of FMA, and iterations of each call."""
TRIAD_ELEMENTS = 1 << 24
"""Elements of each of three arrays, larger than every cache."""
TRIAD_ARRAYS = 3
PAGE = 4096
CHAINS_OF_SUM = 4


@dataclass(frozen=True)
class Peaks:
    """Operations per second by dtype (a multiply-add counts as two), and bytes per second of a triad."""

    threads: int
    operations: dict[str, float]
    bandwidth: float


def measured(threads: int, seconds: float = 0.5) -> Peaks:
    """Measure the peak rates of `threads` threads, which takes a few times `seconds`."""
    parallel = threads > 1
    operations = {dtype: multiply_add_rate(dtype, threads, seconds) for dtype in ("float32", "float64")}
    triads = [triad(streaming=streaming, parallel=parallel) for streaming in (False, True)]
    return Peaks(threads, operations, max(nbytes / _least(run, seconds, parallel) for run, nbytes in triads))


def multiply_add_rate(dtype: str, threads: int, seconds: float = 0.1) -> float:
    """Measure the operations per second of fused multiply-adds in the widest registers that code may use."""
    run, operations = multiply_adds(dtype, threads)
    return operations / _least(run, seconds, threads > 1)


def _least(run: Callable[[], object], seconds: float, threaded: bool) -> float:
    timings = measure({"run": run}, threaded={"run": threaded}, budget=seconds, rounds=(3, 21))
    return timings["run"].seconds


def multiply_adds(dtype: str, threads: int = 1) -> tuple[Callable[[], object], float]:
    """Return a call of nothing but fused multiply-adds in the widest registers, and its number of operations."""
    element = dtypes.named(dtype)
    lanes = cpu_target.target().vector_bytes // element.size
    parts = 2 * threads if threads > 1 else 1
    kernel = RangeKernel(
        f"multiply_adds_{dtype}",
        (f"{dtype}*", "int64", "int64"),
        _chains(element.llvm, lanes),
        extent=2,
        parallel=threads > 1,
        vector_bytes=cpu_target.target().vector_bytes,
    )
    sums = np.full(lanes * parts, 0.5, dtype)
    call = functools.partial(_function(kernel), sums.ctypes.data, ITERATIONS, parts)
    return _holding(call, sums), 2.0 * lanes * FMA_CHAINS * ITERATIONS * parts


def triad(*, streaming: bool, parallel: bool) -> tuple[Callable[[], object], float]:
    """Return a call of a[i] = b[i] + s * c[i] over arrays larger than the caches, and its bytes read and written.

    `streaming`: use streaming stores, which avoid reading the cache line before writing it.
    """
    width = cpu_target.target().vector_bytes
    lanes = width // 4
    kernel = RangeKernel(
        f"triad{'_streaming' if streaming else ''}",
        ("float* restrict", "float* restrict", "float* restrict", "int64"),
        _triad(lanes, streaming),
        extent=3,
        block=TRIAD_ELEMENTS // 64,
        parallel=parallel,
        vector_bytes=width,
    )
    arrays = [_aligned(TRIAD_ELEMENTS) for _ in range(TRIAD_ARRAYS)]
    call = functools.partial(_function(kernel), *[array.ctypes.data for array in arrays], TRIAD_ELEMENTS)
    return _holding(call, *arrays), TRIAD_ARRAYS * 4.0 * TRIAD_ELEMENTS


def reading(array: Any, *, parallel: bool) -> tuple[Callable[[], object], int]:
    """Return a call that sums the words of an array, and the bytes that it reads: whole cache lines."""
    first = -array.ctypes.data % CACHE_LINE_BYTES
    lines = max(array.nbytes - first, 0) // CACHE_LINE_BYTES // CHAINS_OF_SUM * CHAINS_OF_SUM
    kernel = RangeKernel(
        "reading",
        ("int32*", "int32*", "int64"),
        _sums(),
        extent=2,
        block=max(lines // 64, CHAINS_OF_SUM) // CHAINS_OF_SUM * CHAINS_OF_SUM,
        parallel=parallel,
        vector_bytes=cpu_target.target().vector_bytes,
    )
    sums = np.zeros(lines + 1, np.int32)
    call = functools.partial(_function(kernel), array.ctypes.data + first, sums.ctypes.data, lines)
    return _holding(call, array, sums), lines * CACHE_LINE_BYTES


def _aligned(elements: int) -> Any:
    """Return ones, aligned to a page."""
    room = np.ones(elements + PAGE // 4, np.float32)
    return room[-(room.ctypes.data // 4) % (PAGE // 4) :][:elements]


def _function(kernel: RangeKernel) -> Callable[..., int]:
    kinds = [ctypes.c_void_p if "*" in text else ctypes.c_int64 for text in kernel.arguments]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address_of(kernel))


def _holding(call: Callable[[], object], *memory: Any) -> Callable[[], object]:
    """Return the call with references to its memory, which live as long as the call."""

    def run() -> object:
        assert memory
        return call()

    return run


def _chains(llvm: str, lanes: int) -> str:
    """Write the iterations of each part of the range; the sums are stored, or LLVM would delete them as dead code."""
    vector, name = f"<{lanes} x {llvm}>", f"llvm.fma.v{lanes}{'f32' if llvm == 'float' else 'f64'}"
    ones = ", ".join([f"{llvm} 1.0"] * lanes)
    phis = "\n".join(f"  %x{i} = phi {vector} [ <{ones}>, %start ], [ %y{i}, %loop ]" for i in range(FMA_CHAINS))
    steps = "\n".join(
        f"  %y{i} = call {vector} @{name}({vector} %x{i}, {vector} %m, {vector} %m)" for i in range(FMA_CHAINS)
    )
    sums = "\n".join(f"  %s{i} = fadd {vector} %{'y0' if i == 1 else f's{i - 1}'}, %y{i}" for i in range(1, FMA_CHAINS))
    return f"""declare {vector} @{name}({vector}, {vector}, {vector})
define i64 @body(ptr %p, i64 %rounds, i64 %n, i64 %begin, i64 %end) {{
start:
  %at = getelementptr {vector}, ptr %p, i64 %begin
  %m = load {vector}, ptr %at, align 4
  %parts = sub i64 %end, %begin
  %all = mul i64 %parts, %rounds
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %all
  br i1 %more, label %loop, label %done
done:
{sums}
  store {vector} %s{FMA_CHAINS - 1}, ptr %at, align 4
  ret i64 0
}}
"""


def _triad(lanes: int, streaming: bool) -> str:
    """Write whole vectors at aligned addresses."""
    vector, width = f"<{lanes} x float>", 4 * lanes
    scale = ", ".join(["float 3.0"] * lanes)
    return f"""declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define i64 @body(ptr noalias %a, ptr noalias %b, ptr noalias %c, i64 %n, i64 %begin, i64 %end) {{
start:
  br label %loop
loop:
  %i = phi i64 [ %begin, %start ], [ %next, %loop ]
  %bi = getelementptr float, ptr %b, i64 %i
  %ci = getelementptr float, ptr %c, i64 %i
  %ai = getelementptr float, ptr %a, i64 %i
  %x = load {vector}, ptr %bi, align {width}
  %y = load {vector}, ptr %ci, align {width}
  %z = call {vector} @llvm.fma.v{lanes}f32({vector} %y, {vector} <{scale}>, {vector} %x)
  store {vector} %z, ptr %ai, align {width}{", !nontemporal !0" if streaming else ""}
  %next = add i64 %i, {lanes}
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}}
!0 = !{{i32 1}}
"""


def _sums() -> str:
    """Sum several cache lines per iteration; the sum is stored at the start of the range."""
    vector, steps = "<16 x i32>", range(CHAINS_OF_SUM)
    phis = "\n".join(f"  %s{c} = phi {vector} [ zeroinitializer, %start ], [ %t{c}, %loop ]" for c in steps)
    loads = "\n".join(
        f"""  %i{c} = add i64 %i, {c}
  %p{c} = getelementptr {vector}, ptr %from, i64 %i{c}
  %x{c} = load {vector}, ptr %p{c}, align {CACHE_LINE_BYTES}
  %t{c} = add {vector} %s{c}, %x{c}"""
        for c in steps
    )
    joined = "\n".join(f"  %u{c} = add {vector} %{'t0' if c == 1 else f'u{c - 1}'}, %t{c}" for c in steps if c > 0)
    return f"""declare i32 @llvm.vector.reduce.add.v16i32({vector})
define i64 @body(ptr %from, ptr %to, i64 %n, i64 %begin, i64 %end) {{
start:
  br label %loop
loop:
  %i = phi i64 [ %begin, %start ], [ %next, %loop ]
{phis}
{loads}
  %next = add i64 %i, {CHAINS_OF_SUM}
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
{joined}
  %all = call i32 @llvm.vector.reduce.add.v16i32({vector} %u{CHAINS_OF_SUM - 1})
  %at = getelementptr i32, ptr %to, i64 %begin
  store i32 %all, ptr %at
  ret i64 0
}}
"""
