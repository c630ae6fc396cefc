"""``jitkernels bench startup``: time of a fresh process beyond ``import numpy`` until three kernels have run."""

from collections.abc import Iterator, Sequence

from jitkernels.benchmarks.processes import script
from jitkernels.benchmarks.suite import Line, Settings, Verdict, benchmark
from jitkernels.tuning.timer import Timing

STARTUP_PROCESSES = 15
PROMISED_STARTUP_SECONDS = 0.12
STARTUP_PROGRAM = """
import json, sys, time
import numpy as np
start, used = time.perf_counter(), time.process_time()
import jitkernels as jk
imported = time.perf_counter()
x, y = np.ones(8, np.float32), np.empty(8, np.float32)
jk.KernelFuncs.cache().at(jk.VMulAttr(n=8))(x, x, y)
first = time.perf_counter()
a, b = np.ones((16, 64), np.float32), np.empty((16, 64), np.float32)
jk.KernelFuncs.cache().at(jk.SoftmaxAttr(rows=16, n=64))(a, b)
second = time.perf_counter()
m, c = np.ones((64, 64), np.float32), np.empty((64, 64), np.float32)
jk.KernelFuncs.cache().at(jk.MatMulAttr(m=64, n=64, k=64))(m, m, c)
third, processor = time.perf_counter(), time.process_time() - used
assert y[0] == 1 and abs(b[0, 0] - 1 / 64) < 1e-6 and c[0, 0] == 64
times = {"import": imported - start, "VMUL": first - imported, "SOFTMAX": second - first, "MATMUL": third - second}
translated = "jitkernels.codegen.python.kernel_module" in sys.modules
print(json.dumps({"times": {**times, "total": third - start, "processor": processor}, "translated": translated}))
"""


def verdict(lines: Sequence[Line]) -> Verdict:
    (line,) = lines
    total = line.timings["total"]
    loaded = "loops were translated" if line.figures["translated"] else "nothing was translated"
    return Verdict(
        f"{total.seconds * 1e3:.0f} ms beyond numpy (median {(total.seconds + total.spread) * 1e3:.0f} ms), {loaded}; "
        f"at most {PROMISED_STARTUP_SECONDS * 1e3:.0f} ms are promised",
        total.seconds <= PROMISED_STARTUP_SECONDS and not line.figures["translated"],
    )


@benchmark("startup", verdict=verdict)
def startup(settings: Settings) -> Iterator[Line]:
    """Time of a fresh process with a warm cache beyond import numpy until VMUL, SOFTMAX and MATMUL have run."""
    script(STARTUP_PROGRAM)
    runs = [script(STARTUP_PROGRAM) for _ in settings.limited(range(STARTUP_PROCESSES))]
    timings = {}
    for name in runs[0]["times"]:
        seconds = sorted(run["times"][name] for run in runs)
        timings[name] = Timing(seconds[0], seconds[len(seconds) // 2] - seconds[0])
    yield Line("startup", "warm", timings, figures={"translated": float(any(run["translated"] for run in runs))})
