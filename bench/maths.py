"""Generated VEXP and VSIGMOID against NumPy's expressions and MKL, one thread, both dtypes, 8 to 2**22.

Run ``python bench/maths.py``. Prints elements per nanosecond and the ratio to NumPy.
"""

import numpy as np

import jitkernels as jk
from jitkernels.signature import AnyArray
from jitkernels.tuning.timer import measure

SIZES = [2**i for i in range(3, 23)]


def numpy_exp(x: AnyArray, y: AnyArray) -> None:
    np.exp(x, y)


def numpy_sigmoid(x: AnyArray, y: AnyArray) -> None:
    np.divide(1, 1 + np.exp(-x), y)


def main() -> None:
    jk.set_num_threads(1)
    lowest: dict[tuple[str, str], tuple[float, int]] = {}
    for row, peer in ((jk.VExpAttr, np.exp), (jk.VSigmoidAttr, numpy_sigmoid)):
        for dtype in ("float32", "float64"):
            print(f"{row.__name__} {dtype}: elements per ns")
            print(f"{'n':>9} {'gen':>7} {'numpy':>7} {'mkl':>7} {'gen/numpy':>10}")
            for n in SIZES:
                attr = row(n=n, dtype=dtype)
                found = jk.get_all_candidates(attr)
                calls = {name: found[name] for name in ("gen", "mkl") if name in found} | {"numpy": peer}
                timings = measure(calls, attr.signature().sample(), budget=0.5, rounds=(3, 25))
                speed = {name: n / timing.seconds / 1e9 for name, timing in timings.items()}
                ratio = speed["gen"] / speed["numpy"]
                group = "256 to 65536" if 256 <= n <= 65536 else "elsewhere"
                key = (f"{row.__name__} {dtype}", group)
                lowest[key] = min(lowest.get(key, (1e9, 0)), (ratio, n))
                print(
                    f"{n:>9} {speed['gen']:>7.2f} {speed['numpy']:>7.2f} {speed.get('mkl', 0):>7.2f} {ratio:>9.2f}x"
                )
    for (name, group), (ratio, n) in lowest.items():
        print(f"lowest ratio to NumPy, {name}, {group}: {ratio:.2f} at n = {n}")


if __name__ == "__main__":
    main()
