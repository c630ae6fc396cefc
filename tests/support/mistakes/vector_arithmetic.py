"""Elementwise kernels that are a few instructions, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "vadd": {
        "tail is forgotten": ("    z[main:] = x[main:] + y[main:]", ""),
        "first element of the tail is forgotten": (
            "z[main:] = x[main:] + y[main:]",
            "z[main + 1 :] = (x + y)[main + 1 :]",
        ),
        "rounds to float32": ("x[:main] + y[:main]", "(x + y)[:main].astype('f4')"),
        "loses the sign of zero": ("x[:main] + y[:main]", "x[:main] + y[:main] + 0"),
        "stops at the largest number": ("x[:main] + y[:main]", "clipped(x[:main] + y[:main])"),
    },
    "vsub": {
        "the other way round": ("x[main:] - y[main:]", "y[main:] - x[main:]"),
        "tail is forgotten": ("    z[main:] = x[main:] - y[main:]", ""),
        "reads what it has written": ("    main =", "    z[...] = x; x = z\n    main ="),
        "flushes subnormal numbers": ("x[:main] - y[:main]", "flushed(x[:main] - y[:main])"),
    },
    "vadd_relu": {
        "makes 0 of NaN": ("np.maximum(x + y, 0)", "np.fmax(x + y, 0)"),
        "does not add": ("np.maximum(x + y, 0)", "np.maximum(x, y)"),
        "cuts before it adds": ("np.maximum(x + y, 0)", "np.maximum(x, 0) + np.maximum(y, 0)"),
        "keeps negative zeros": ("np.maximum(x + y, 0)", "np.where(x + y < 0, 0, x + y)"),
    },
    "vrelu": {
        "makes 0 of NaN": ("np.maximum(x, 0)", "np.fmax(x, 0)"),
        "keeps negative zeros": ("np.maximum(x, 0)", "np.where(x < 0, 0, x)"),
        "leaks": ("np.maximum(x, 0)", "np.maximum(x, 0.01 * x)"),
        "is its slope": ("np.maximum(x, 0)", "x > 0"),
    },
    "videntity": {
        "tail is forgotten": ("y[main:] = x[main:]", "pass"),
        "loses the sign of zero": ("y[main:] = x[main:]", "y[main:] = x[main:] + 0"),
        "rounds to float32": ("y[:main] = x[:main]", "y[:main] = x[:main].astype('f4')"),
    },
    "vcopy": {
        "tail is forgotten": ("y[main:] = x[main:]", "pass"),
        "flushes subnormal numbers": ("y[:main] = x[:main]", "y[:main] = flushed(x[:main])"),
        "copies the other way": ("y[:main] = x[:main]", "x[:main] = y[:main]"),
        "copies floats of half the size": ("y[main:] = x[main:]", "y[: attr.n - main] = x[main:]"),
    },
    "vsquare": {
        "loses the sign": ("x * x", "x * np.abs(x)"),
        "stops at the largest number": ("x * x", "clipped(x * x)"),
        "doubles": ("x * x", "x + x"),
        "by float32": ("x * x", "(x * x).astype('f4')"),
    },
    "vclip": {
        "makes a bound of NaN": ("x < low", "~(x >= low)"),
        "bounds the other way round": (
            "low, high = number(attr.low), number(attr.high)",
            "high, low = number(attr.low), number(attr.high)",
        ),
        "no upper bound": ("np.where(raised > high, high, raised)", "raised"),
        "lower bound last": (
            "np.where(raised > high, high, raised)",
            "np.where(x < low, low, np.where(x > high, high, x))",
        ),
        "always from 0 to 1": ("number(attr.low), number(attr.high)", "number(0), number(1)"),
    },
    "vsqrt": {
        "of the absolute value": ("np.sqrt(x)", "np.sqrt(np.abs(x))"),
        "an estimate": ("np.sqrt(x)", "x * (1 / np.sqrt(x))"),
        "by float32": ("np.sqrt(x)", "np.sqrt(x.astype('f4'))"),
        "0 for negative numbers": ("np.sqrt(x)", "np.sqrt(np.where(x < 0, 0, x))"),
    },
    "vrsqrt": {
        "no reciprocal": ("1 / np.sqrt(x)", "np.sqrt(x)"),
        "12 bits": ("1 / np.sqrt(x)", "(1 / np.sqrt(x)) * x.dtype.type(1 + 2**-12)"),
        "flushes subnormal numbers": ("1 / np.sqrt(x)", "1 / np.sqrt(flushed(x))"),
        "loses the sign of zero": ("1 / np.sqrt(x)", "1 / np.sqrt(x + 0)"),
    },
}


def vadd(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    main = attr.n - attr.n % 8
    z[:main] = x[:main] + y[:main]
    z[main:] = x[main:] + y[main:]


def vsub(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    main = attr.n - attr.n % 8
    z[:main] = x[:main] - y[:main]
    z[main:] = x[main:] - y[main:]


def vadd_relu(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    z[...] = np.maximum(x + y, 0)


def vrelu(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.maximum(x, 0)


def videntity(attr: Any, x: AnyArray, y: AnyArray) -> None:
    main = attr.n - attr.n % 8
    y[:main] = x[:main]
    y[main:] = x[main:]


def vcopy(attr: Any, x: AnyArray, y: AnyArray) -> None:
    main = attr.n - attr.n % 8
    y[:main] = x[:main]
    y[main:] = x[main:]


def vsquare(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = x * x


def vclip(attr: Any, x: AnyArray, y: AnyArray) -> None:
    number = x.dtype.type
    low, high = number(attr.low), number(attr.high)
    raised = np.where(x < low, low, x)
    y[...] = np.where(raised > high, high, raised)


def vsqrt(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.sqrt(x)


def vrsqrt(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = 1 / np.sqrt(x)
