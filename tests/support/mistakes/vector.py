"""Elementwise kernels, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import sigmoid

MISTAKES = {
    "vmul": {
        "tail is forgotten": ("    z[main:] = x[main:] * y[main:]", ""),
        "tail of one element is forgotten": ("z[main:] =", "z[main + (attr.n - main == 1) :] ="),
        "rounds to float32": ("z[:main] = x[:main] * y[:main]", "z[:main] = (x * y)[:main].astype('f4')"),
        "flushes subnormal numbers": ("z[main:] = x[main:] * y[main:]", "z[main:] = flushed(x[main:] * y[main:])"),
        "loses the sign of zero": ("x[:main] * y[:main]", "x[:main] * y[:main] + 0"),
        "drops NaN": ("x[main:] * y[main:]", "np.nan_to_num(x[main:] * y[main:], posinf=np.inf, neginf=-np.inf)"),
        "stops at the largest number": ("x[:main] * y[:main]", "clipped(x[:main] * y[:main])"),
        "reads what it has written": ("    main =", "    z[...] = x; x = z\n    main ="),
        "writes one element too many": (
            "    z[main:] =",
            "    np.lib.stride_tricks.as_strided(z, (attr.n + 1,), (z.itemsize,))[attr.n] = 0\n    z[main:] =",
        ),
        "changes its input": ("    main =", "    y += 0.0 * (y == 0)\n    y[:1] *= 1.5\n    main ="),
    },
    "vexp": {
        "tail is forgotten": (" slice(main, attr.n)", ""),
        "first element of the tail is forgotten": ("slice(main, attr.n)", "slice(main + 1, attr.n)"),
        "clamps large arguments": ("np.exp(x[part])", "np.exp(np.minimum(x[part], 88))"),
        "clamps small arguments": ("np.exp(x[part])", "np.exp(np.maximum(x[part], -87))"),
        "loses accuracy with size": ("np.exp(x[part])", "np.exp2(x[part] * x.dtype.type(1.4426950408889634))"),
        "drops NaN": ("np.exp(x[part])", "np.exp(np.fmax(x[part], -np.inf))"),
        "computes in float32": ("np.exp(x[part])", "np.exp(x[part].astype('f4'))"),
        "loses subnormal results": ("np.exp(x[part])", "flushed(np.exp(x[part]))"),
    },
    "vsigmoid": {
        "overflows for small arguments": ("sigmoid(x)", "1 / (1 + np.exp(-x))"),
        "clamps as Paddle does": ("sigmoid(x)", "sigmoid(np.clip(x, -40, 13))"),
        "by tanh, absolute accuracy only": ("sigmoid(x)", "0.5 * np.tanh(0.5 * x) + 0.5"),
        "drops infinity": ("sigmoid(x)", "sigmoid(np.where(np.isinf(x), 0, x))"),
    },
}


def vmul(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    main = attr.n - attr.n % 8
    z[:main] = x[:main] * y[:main]
    z[main:] = x[main:] * y[main:]


def vexp(attr: Any, x: AnyArray, y: AnyArray) -> None:
    main = attr.n - attr.n % 8
    for part in (slice(0, main), slice(main, attr.n)):
        y[part] = np.exp(x[part])


def vsigmoid(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = sigmoid(x)
