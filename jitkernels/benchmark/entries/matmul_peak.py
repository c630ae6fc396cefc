"""``jitkernels bench matmul-peak``: MATMUL on one thread against what fused multiply-adds in registers reach."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import llvmlite.binding as llvm
import numpy as np

import jitkernels as jk
from jitkernels import machine
from jitkernels.benchmark.suite import Line, Settings, Verdict, benchmark
from jitkernels.benchmark.table import time_calls
from jitkernels.peers import Bound
from jitkernels.tuning.timer import Timing

CHAINS = 12
ROUNDS = 20000
SIZES = (8, 16, 24, 32, 48, 64, 100, 128, 256, 512, 1024, 2048)
PEAK = "peak"


def verdict(lines: Sequence[Line]) -> Verdict:
    shares = {line.case: line.timings[PEAK].seconds / line.timings[line.pick].seconds for line in lines}
    return Verdict("share of the peak: " + ", ".join(f"{case} {share:.0%}" for case, share in shares.items()))


@benchmark("matmul-peak", verdict=verdict, against="numpy")
def matmul_peak(settings: Settings) -> Iterator[Line]:
    """MATMUL float32 on one thread against the FMA peak measured beside it, the libraries and NumPy.

    "peak" is the time that as many operations take in registers.
    """
    run_peak, peak_operations = _peak_loop()
    for n in SIZES:
        a, b, c = (np.random.default_rng(i).random((n, n), np.float32) for i in range(3))
        attr = jk.MatMulAttr(m=n, n=n, k=n)
        found = jk.get_all_candidates(attr)
        calls: dict[str, Bound] = {
            name: partial(found[name], a, b, c) for name in ("gen", "mkl", "openblas") if name in found
        }
        calls |= {"numpy": partial(np.matmul, a, b, c), PEAK: partial(run_peak)}
        seconds = settings.seconds * (40 if n >= 512 else 6)
        timings = time_calls(calls, seconds=seconds, rounds=(3, 30))
        scale = 2.0 * n**3 / peak_operations
        peak = timings[PEAK]
        timings[PEAK] = Timing(peak.seconds * scale, peak.spread * scale)
        yield Line("matmul-peak", f"n = {n}", timings, "gen")


def _peak_loop() -> tuple[Callable[[], None], float]:
    """A call that does nothing but fused multiply-adds, and how many operations it does."""
    lanes = machine.target().vector_bytes // 4
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
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), target)
    engine.finalize_object()
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
        engine.get_function_address("entry")
    )
    memory = np.full(lanes, 0.5, np.float32)

    def run() -> None:
        assert engine  # it owns the code and must live as long as this function
        function(ROUNDS, memory.ctypes.data)

    return run, 2.0 * lanes * CHAINS * ROUNDS
