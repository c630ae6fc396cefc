"""SOFTMAX and LAYER_NORM picks against the NumPy expressions a user would write, rows of 8 to 4096.

Run ``python bench/rows.py``. Prints microseconds and the ratio.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import jitkernels as jk
from jitkernels.signature import AnyArray
from jitkernels.tuning.timer import measure


def numpy_softmax(x: AnyArray, y: AnyArray) -> None:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    np.divide(e, e.sum(axis=-1, keepdims=True), out=y)


def numpy_layer_norm(x: AnyArray, scale: AnyArray, bias: AnyArray, y: AnyArray) -> None:
    mean = x.mean(axis=-1, keepdims=True)
    y[...] = (x - mean) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5) * scale + bias


def main() -> None:
    peers: tuple[tuple[Any, Callable[..., None]], ...] = (
        (jk.SoftmaxAttr, numpy_softmax),
        (jk.LayerNormAttr, numpy_layer_norm),
    )
    print(
        f"{'kernel':>14} {'dtype':>8} {'rows':>5} {'n':>5} {'pick':>10} {'us':>8} {'NumPy us':>9} {'ratio':>7}"
    )
    for row, peer in peers:
        for dtype in ("float32", "float64"):
            for rows in (1, 64):
                for n in (8, 64, 512, 4096):
                    attr = row(rows=rows, n=n, dtype=dtype)
                    pick = jk.KernelFuncs.cache().at(attr)
                    timings = measure(
                        {"pick": pick, "numpy": peer}, attr.signature().sample(), budget=0.5, rounds=(3, 25)
                    )
                    own, numpy = timings["pick"].seconds * 1e6, timings["numpy"].seconds * 1e6
                    name = pick.__self__.implementation  # type: ignore[attr-defined]
                    print(
                        f"{row.kernel_type.name:>14} {dtype:>8} {rows:>5} {n:>5} {name:>10} "
                        f"{own:>8.3f} {numpy:>9.3f} {numpy / own:>6.1f}x"
                    )


if __name__ == "__main__":
    main()
