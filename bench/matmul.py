"""Generated MATMUL, float32, one thread: share of the FMA peak, and against OpenBLAS, MKL and NumPy.

Run ``python bench/matmul.py [SIZE ...]``. The peak is what a loop of independent fused multiply-adds in
registers reaches, measured in the same rounds.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import threadpoolctl

import jitkernels as jk
from jitkernels import machine
from jitkernels.choosing import best_variant, known_record
from jitkernels.native import codegen, load
from jitkernels.registry import implementation
from jitkernels.tuning.timer import measure

CHAINS = 12
ROUNDS = 20000


def peak_loop() -> tuple[Callable[[], object], float]:
    """A call that does nothing but fused multiply-adds, and how many operations it does."""
    import ctypes

    lanes = machine.target().lanes("float32")
    vector = f"<{lanes} x float>"
    ones = ", ".join(["float 1.0"] * lanes)
    phis = "\n".join(f"  %x{i} = phi {vector} [ <{ones}>, %start ], [ %y{i}, %loop ]" for i in range(CHAINS))
    steps = "\n".join(
        f"  %y{i} = call {vector} @llvm.fma.v{lanes}f32({vector} %x{i}, {vector} %m, {vector} %m)"
        for i in range(CHAINS)
    )
    sums = "\n".join(
        f"  %s{i} = fadd {vector} %{'y0' if i == 1 else f's{i - 1}'}, %y{i}" for i in range(1, CHAINS)
    )
    text = f"""declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
define i64 @entry(i64 %n, ptr %p) {{
start:
  %m = load {vector}, ptr %p, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{sums}
  store {vector} %s{CHAINS - 1}, ptr %p, align 4
  ret i64 0
}}
"""
    address = load.address_of(codegen.IRSource("peak", text))
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address)
    memory = np.full(lanes, 0.5, np.float32)
    return lambda: function(ROUNDS, memory.ctypes.data), 2.0 * lanes * CHAINS * ROUNDS


def calls_for(n: int) -> dict[str, Callable[..., Any]]:
    attr = jk.MatMulAttr(m=n, n=n, k=n)
    if known_record(attr) is None:
        jk.tune(attr)
    found = jk.get_all_candidates(attr)
    print(f"# n = {n}: gen variant {dict(best_variant(attr, implementation(jk.MatMulAttr, 'gen')))}")
    return {name: found[name] for name in ("gen", "mkl", "openblas") if name in found} | {"numpy": np.matmul}


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]] or [
        8,
        16,
        24,
        32,
        48,
        64,
        100,
        128,
        256,
        512,
        1024,
        2048,
    ]
    jk.set_num_threads(1)
    run_peak, peak_operations = peak_loop()
    names = ("gen", "mkl", "openblas", "numpy", "peak")
    print(
        f"{'n':>6}",
        *(f"{name:>9}" for name in names),
        f"{'gen/peak':>9} {'/mkl':>6} {'/openblas':>9} {'/numpy':>6}",
    )
    with threadpoolctl.threadpool_limits(1):
        for n in sizes:
            a, b, c = (np.random.default_rng(i).random((n, n), np.float32) for i in range(3))
            calls = calls_for(n)
            arguments: dict[str, tuple[Any, ...]] = dict.fromkeys(calls, (a, b, c)) | {"peak": ()}
            budget = 10.0 if n >= 512 else 1.5
            timings = measure(calls | {"peak": run_peak}, arguments, budget=budget, rounds=(3, 30))
            rate = {name: 2.0 * n**3 / timing.seconds / 1e9 for name, timing in timings.items()}
            rate["peak"] = peak_operations / timings["peak"].seconds / 1e9
            peers = [
                rate["gen"] / rate[name] if name in rate else float("nan")
                for name in ("mkl", "openblas", "numpy")
            ]
            print(
                f"{n:>6}",
                *(f"{rate.get(name, 0):>9.1f}" for name in names),
                f"{rate['gen'] / rate['peak']:>8.1%} {peers[0]:>6.2f} {peers[1]:>9.2f} {peers[2]:>6.2f}",
            )


if __name__ == "__main__":
    main()
