"""Elementwise kernels that broadcast a smaller operand, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "vscal": {
        "tail is forgotten": ("    y[main:] = a[0] * x[main:]", ""),
        "leaves the number out where it is 1 or so": ("a[0] * x[:main]", "(x if abs(a[0]) > 1.5 else a[0] * x)[:main]"),
        "rounds to float32": ("a[0] * x[:main]", "(a[0] * x[:main]).astype('f4')"),
        "reads more than a number": ("a[0] * x[main:]", "x[main:] * x[main:]"),
        "loses the sign of zero": ("a[0] * x[main:]", "a[0] * x[main:] + 0"),
    },
    "vadd_bias": {
        "tail is forgotten": ("    y[main:] = a[0] + x[main:]", ""),
        "scales": ("a[0] + x[:main]", "a[0] * x[:main]"),
        "changes the number": ("    main =", "    a[0] += 1; a[0] -= 0.5\n    main ="),
        "adds an element": ("a[0] + x[main:]", "x[-1:] + x[main:]"),
    },
    "stride_scal": {
        "begins behind the first": ("y[:: attr.stride]", "y[attr.stride - 1 :: attr.stride]"),
        "scales all": ("y[:: attr.stride]", "y[:]"),
        "scales the others": ("np.copyto(y, x)", "np.copyto(y, a * x)"),
        "leaves the others as they were": ("    np.copyto(y, x)\n", "    y[:: attr.stride] = x[:: attr.stride]\n"),
        "forgets the last": ("y[:: attr.stride]", "y[: -1 if attr.n > 1 else None : attr.stride]"),
    },
    "vbroadcast": {
        "tail is forgotten": ("y[:, main:] = x[main:]", "pass"),
        "last row is forgotten": ("y[:, :main] = x[:main]", "y[: max(attr.h - 1, 1), :main] = x[:main]"),
        "along the other axis": ("y[:, :main] = x[:main]", "y[:, :main] = np.resize(x[:, np.newaxis], (attr.h, main))"),
        "rounds to float32": ("y[:, :main] = x[:main]", "y[:, :main] = x[:main].astype('f4')"),
    },
    "nchw16c_mul_nc": {
        "8 channels": ("z[...] = x * y", "z[..., :8] = (x * y)[..., :8]"),
        "another order of channels": ("x * y", "x * y[::-1]"),
        "the last row is forgotten": ("z[...] = x * y", "z[:-1] = (x * y)[:-1]"),
        "one number for all channels": ("x * y", "x * y[:1]"),
    },
}


def vscal(attr: Any, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    main = attr.n - attr.n % 8
    y[:main] = a[0] * x[:main]
    y[main:] = a[0] * x[main:]


def vadd_bias(attr: Any, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    main = attr.n - attr.n % 8
    y[:main] = a[0] + x[:main]
    y[main:] = a[0] + x[main:]


def stride_scal(attr: Any, a: AnyArray, x: AnyArray, y: AnyArray) -> None:
    np.copyto(y, x)
    y[:: attr.stride] *= a


def vbroadcast(attr: Any, x: AnyArray, y: AnyArray) -> None:
    main = attr.w - attr.w % 8
    y[:, :main] = x[:main]
    y[:, main:] = x[main:]


def nchw16c_mul_nc(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    z[...] = x * y
