"""What a fresh process pays, beyond ``import numpy``, until VMUL, SOFTMAX and MATMUL have given results.

Run ``python bench/startup.py``. The cache is warmed first; the minimum over fresh processes counts.
"""

import json
import subprocess
import sys

CHILD = """
import json, sys, time
import numpy as np
start = time.perf_counter()
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
third = time.perf_counter()
assert y[0] == 1 and abs(b[0, 0] - 1 / 64) < 1e-6 and c[0, 0] == 64
times = {"import": imported - start, "VMUL": first - imported, "SOFTMAX": second - first, "MATMUL": third - second}
print(json.dumps({"times": times, "total": third - start, "numba": "numba" in sys.modules}))
"""


def main(processes: int = 15) -> None:
    runs = []
    for number in range(processes + 1):
        done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
        if number:
            runs.append(json.loads(done.stdout))
    best = min(runs, key=lambda run: run["total"])
    for name, seconds in best["times"].items():
        print(f"{name:>8} {seconds * 1e3:>7.1f} ms")
    middle = sorted(run["total"] for run in runs)[len(runs) // 2]
    print(
        f"   total {best['total'] * 1e3:>7.1f} ms beyond numpy (median {middle * 1e3:.1f} ms, {processes} processes)"
    )
    print(f"   numba imported: {any(run['numba'] for run in runs)}")


if __name__ == "__main__":
    main()
