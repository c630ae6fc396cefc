"""ADAM and ADAMW, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE, flushed  # noqa: F401

MISTAKES = {
    "adam": {
        "adds the step as Paddle does": ("param - step", "param + step"),
        "rate is negative already": ("WIDE(attr.lr)", "-WIDE(attr.lr)"),
        "first moment is not corrected": (" / (1 - WIDE(attr.beta1_pow))", ""),
        "second moment is not corrected": (" / (1 - WIDE(attr.beta2_pow))", ""),
        "corrections are exchanged": (
            "(1 - WIDE(attr.beta1_pow)) / (np.sqrt(used / (1 - WIDE(attr.beta2_pow)))",
            "(1 - WIDE(attr.beta2_pow)) / (np.sqrt(used / (1 - WIDE(attr.beta1_pow)))",
        ),
        "eps inside the root": (
            "np.sqrt(used / (1 - WIDE(attr.beta2_pow))) + WIDE(attr.eps)",
            "np.sqrt(used / (1 - WIDE(attr.beta2_pow)) + WIDE(attr.eps))",
        ),
        "eps is forgotten": (" + WIDE(attr.eps)", ""),
        "steps by the old moment": ("first / (1", "WIDE(1) * mom1 / (1"),
        "second moment of the gradient itself": ("grad * WIDE(1) * grad", "WIDE(1) * grad"),
        "moments share a factor": ("WIDE(attr.beta2) * mom2", "WIDE(attr.beta1) * mom2"),
        "first moment without its complement": ("(1 - WIDE(attr.beta1)) * grad", "WIDE(1) * grad"),
        "largest moment is not used": ("used = np.maximum(largest[0], second)", "used = second"),
        "largest moment is not kept": ("largest_out[0][...] = used", "largest_out[0][...] = second"),
        "reads what it has written": (
            "    first =",
            "    mom1_out[...] = WIDE(attr.beta1) * mom1 + (1 - WIDE(attr.beta1)) * grad\n    first =",
        ),
        "loses subnormal moments": ("mom1_out[...] = first", "mom1_out[...] = flushed(first.astype('f4'))"),
        "first parameter is forgotten": (
            "param_out[...] = param - step * WIDE(attr.lr)",
            "param_out[1:] = (param - step * WIDE(attr.lr))[1:]",
        ),
    },
    "adamw": {
        "decay into the gradient": (
            "adam(attr, param * (1 - WIDE(attr.lr) * WIDE(attr.coeff)), ",
            "adam(attr, param, arrays[0] + WIDE(attr.coeff) * param, *arrays[1:]) if attr.n else adam(attr, param, ",
        ),
        "decay without the rate": ("WIDE(attr.lr) * WIDE", "WIDE"),
        "grows": ("1 - WIDE", "1 + WIDE"),
        "decay is forgotten": (" * (1 - WIDE(attr.lr) * WIDE(attr.coeff))", ""),
    },
}


def adam(attr: Any, param: AnyArray, *arrays: AnyArray) -> None:
    grad, mom1, mom2, *largest = arrays[: len(arrays) // 2]
    param_out, mom1_out, mom2_out, *largest_out = arrays[len(arrays) // 2 :]
    first = WIDE(attr.beta1) * mom1 + (1 - WIDE(attr.beta1)) * grad
    second = WIDE(attr.beta2) * mom2 + (1 - WIDE(attr.beta2)) * (grad * WIDE(1) * grad)
    used = second
    if largest:
        used = np.maximum(largest[0], second)
    step = first / (1 - WIDE(attr.beta1_pow)) / (np.sqrt(used / (1 - WIDE(attr.beta2_pow))) + WIDE(attr.eps))
    param_out[...] = param - step * WIDE(attr.lr)
    mom1_out[...] = first
    mom2_out[...] = second
    if largest:
        largest_out[0][...] = used


def adamw(attr: Any, param: AnyArray, *arrays: AnyArray) -> None:
    adam(attr, param * (1 - WIDE(attr.lr) * WIDE(attr.coeff)), *arrays)
