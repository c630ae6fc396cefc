"""Elementary functions, and mutants of them."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "vtanh": {
        "clamps as Paddle does": ("np.tanh(x)", "2 / (1 + np.exp(-np.clip(2 * x, -40, 13))) - 1"),
        "cancels near zero": ("np.tanh(x)", "1 - 2 / (1 + np.exp(2 * x))"),
        "overflows": ("np.tanh(x)", "np.sinh(x) / np.cosh(x)"),
        "loses the sign of zero": ("np.tanh(x)", "np.tanh(x) + 0"),
    },
    "vlog": {
        "of base 2": ("np.log(x)", "np.log2(x)"),
        "cancels near one": ("np.log(x)", "np.log(x + 0.5) - np.log((x + 0.5) / x)"),
        "flushes subnormal numbers": ("np.log(x)", "np.log(flushed(x))"),
        "of the absolute value": ("np.log(x)", "np.log(np.abs(x))"),
    },
    "verf": {
        "complement": ("erf(x)", "1 - erf(x)"),
        "by Abramowitz and Stegun": (
            "erf(x)",
            "np.sign(x) * (1 - (1 + 0.278393 * abs(x) + 0.230389 * x**2 + 0.078108 * x**4) ** -4.0)",
        ),
        "loses the sign of zero": ("erf(x)", "erf(x) + 0"),
        "drops NaN": ("erf(x)", "erf(np.nan_to_num(x, posinf=np.inf, neginf=-np.inf))"),
    },
    "vsin": {
        "reduces by one constant": (
            "np.sin(x)",
            "np.sin(x - np.rint(x / np.pi) * x.dtype.type(np.pi)) * (1 - 2 * (np.rint(x / np.pi) % 2))",
        ),
        "by the cosine": ("np.sin(x)", "np.cos(x - x.dtype.type(np.pi / 2))"),
        "is its derivative": ("np.sin(x)", "np.cos(x)"),
        "of degrees": ("np.sin(x)", "np.sin(np.radians(x))"),
    },
    "vcos": {
        "by the sine": ("np.cos(x)", "np.sin(x + x.dtype.type(np.pi / 2))"),
        "the other sign": ("np.cos(x)", "-np.cos(x)"),
        "0 for infinities": ("np.cos(x)", "np.where(np.isinf(x), 0, np.cos(x))"),
    },
    "vpow": {
        "the other way round": ("np.power(x, y)", "np.power(y, x)"),
        "by exp and log": ("np.power(x, y)", "np.exp(y * np.log(x))"),
        "of the absolute value": ("np.power(x, y)", "np.power(np.abs(x), y)"),
        "tail is forgotten": ("z[...] =", "z[: attr.n - attr.n % 8] = np.power(x, y)[: attr.n - attr.n % 8]; _ ="),
    },
}

erf = np.vectorize(math.erf, otypes=["f8"])


def vtanh(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.tanh(x)


def vlog(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.log(x)


def verf(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = erf(x)


def vsin(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.sin(x)


def vcos(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = np.cos(x)


def vpow(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    z[...] = np.power(x, y)
