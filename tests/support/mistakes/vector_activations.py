"""Elementwise activations, and mutants of them."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import sigmoid

MISTAKES = {
    "vgelu": {
        "always by erf": ('attr.form == "tanh"', "False"),
        "always by tanh": ('attr.form == "tanh"', "True"),
        "by the sigmoid of 1.702 x": ("sigmoid(twice)", "sigmoid(1.702 * x)"),
        "cancels": ("0.5 * erfc(-x * math.sqrt(0.5))", "0.5 * (1 - (erfc(x * math.sqrt(0.5)) - 1))"),
        "no half": ("0.5 * erfc(", "erfc("),
    },
    "vsilu": {
        "no product": ("x * sigmoid(x)", "sigmoid(x)"),
        "overflows": ("x * sigmoid(x)", "x * np.exp(x) / (1 + np.exp(x))"),
        "by tanh": ("x * sigmoid(x)", "x * (0.5 + 0.5 * np.tanh(0.5 * x))"),
        "drops NaN": ("x * sigmoid(x)", "np.nan_to_num(x) * sigmoid(x)"),
    },
    "vsoftplus": {
        "overflows": ("np.logaddexp(x, zero)", "np.log1p(np.exp(x))"),
        "ends at 20": ("np.logaddexp(x, zero)", "np.where(x > 9, x, np.logaddexp(x, zero))"),
        "cancels": ("np.logaddexp(x, zero)", "np.log(1 + np.exp(x))"),
        "loses subnormal results": ("np.logaddexp(x, zero)", "flushed(np.logaddexp(x, zero))"),
    },
    "swiglu": {
        "the other is the gate": ("a * sigmoid(a) * b", "b * sigmoid(b) * a"),
        "no product": ("a * sigmoid(a) * b", "sigmoid(a) * b"),
        "sum": ("a * sigmoid(a) * b", "a * sigmoid(a) + b"),
        "overflows": ("a * sigmoid(a) * b", "a * b * sigmoid(a)"),
    },
}

erfc = np.vectorize(math.erfc, otypes=["f8"])


def vgelu(attr: Any, x: AnyArray, y: AnyArray) -> None:
    twice = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
    y[...] = x * (sigmoid(twice) if attr.form == "tanh" else 0.5 * erfc(-x * math.sqrt(0.5)))


def vsilu(attr: Any, x: AnyArray, y: AnyArray) -> None:
    y[...] = x * sigmoid(x)


def vsoftplus(attr: Any, x: AnyArray, y: AnyArray) -> None:
    zero = x.dtype.type(0)
    y[...] = np.logaddexp(x, zero)


def swiglu(attr: Any, a: AnyArray, b: AnyArray, y: AnyArray) -> None:
    y[...] = a * sigmoid(a) * b
