"""What a call costs: VMUL by kernel and by everyday function against ``numpy.multiply``, float32.

Run ``python bench/launch.py``. Prints nanoseconds and the ratio to ``numpy.multiply(x, y, z)`` at each size.
"""

import numpy as np

import jitkernels as jk
from jitkernels.tuning.timer import measure


def main() -> None:
    print(
        f"{'n':>6} {'kernel(x, y, z)':>18} {'jk.vmul(out=z)':>18} {'jk.vmul(x, y)':>18} {'np.multiply':>14}"
    )
    for n in (8, 32, 128, 1024):
        x, y, z = (np.ones(n, np.float32) for _ in range(3))
        jk.vmul(x, y, out=z)
        calls = {
            "kernel": jk.KernelFuncs.cache().at(jk.VMulAttr(n=n)),
            "everyday": jk.vmul,
            "allocating": jk.vmul,
            "numpy": np.multiply,
        }
        arguments = {"kernel": (x, y, z), "everyday": (x, y), "allocating": (x, y), "numpy": (x, y, z)}
        timings = measure(calls, arguments, named={"everyday": {"out": z}}, budget=1.0, rounds=(3, 40))
        found = {name: timing.seconds * 1e9 for name, timing in timings.items()}
        cells = [found[name] for name in ("kernel", "everyday", "allocating")]
        print(
            f"{n:>6}",
            *(f"{cell:>7.1f} ns {found['numpy'] / cell:>5.2f}x " for cell in cells),
            f"{found['numpy']:>10.1f} ns",
        )


if __name__ == "__main__":
    main()
