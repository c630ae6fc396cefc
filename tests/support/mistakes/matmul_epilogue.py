"""MATMUL_EPILOGUE, and mutants of it."""

import math
from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import sigmoid

MISTAKES = {
    "matmul_epilogue": {
        "square b is never transposed": ("if attr.trans_b else b", "if attr.trans_b and attr.n != attr.k else b"),
        "bias is forgotten": ("z += bias[0]", "pass"),
        "bias of the first column for all": ("z += bias[0]", "z += bias[0][:1]"),
        "bias is added behind the activation": ("    if bias:\n        z += bias[0]\n", ""),
        "relu of the absolute value": ("np.maximum(z, 0)", "abs(z)"),
        "relu loses NaN": ("np.maximum(z, 0)", "np.where(z > 0, z, 0)"),
        "gelu by tanh": (
            "z * np.asarray(phi(-z * math.sqrt(0.5))).astype(z.dtype) / 2",
            "z * (1 + np.tanh(0.7978845608 * (z + 0.044715 * z**3))) / 2",
        ),
        "silu is sigmoid": ("z * sigmoid(z)", "sigmoid(z)"),
        "tanh is done twice where rows are many": ("np.tanh(z)", "np.tanh(np.tanh(z) if attr.m > 30 else z)"),
        "last product is lost where k is odd": (
            "left @ right",
            "left[:, : attr.k - attr.k % 2] @ right[: attr.k - attr.k % 2]",
        ),
    },
}  # fmt: skip
phi = np.frompyfunc(math.erfc, 1, 1)


def matmul_epilogue(attr: Any, a: AnyArray, b: AnyArray, *rest: AnyArray) -> None:
    *bias, c = rest
    left = a.T if attr.trans_a else a
    right = b.T if attr.trans_b else b
    z = left @ right
    if bias:
        z += bias[0]
    activated: dict[str, Any] = {
        "identity": lambda: z,
        "relu": lambda: np.maximum(z, 0),
        "gelu": lambda: z * np.asarray(phi(-z * math.sqrt(0.5))).astype(z.dtype) / 2,
        "silu": lambda: z * sigmoid(z),
        "tanh": lambda: np.tanh(z),
        "sigmoid": lambda: sigmoid(z),
    }
    c[...] = activated[attr.activation]()
