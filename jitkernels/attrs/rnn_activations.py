"""What the elementwise parts of recurrent cells share: the names of their activations, and how far these may be off."""

import numpy as np

from jitkernels.signature import AnyArray

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")


def finite(terms: AnyArray, dtype: str) -> AnyArray:
    """Infinite where a sum on the way may overflow, however flat the activation that it goes to."""
    return np.where(terms > float(np.finfo(dtype).max), np.inf, terms)


def activated(name: str, x: AnyArray, dtype: str) -> tuple[AnyArray, AnyArray, AnyArray]:
    """An activation, what its error is relative to (more than itself if it underflows), and its slope."""
    slope = np.ones_like(x)
    if name == "sigmoid":
        value = 1 / (1 + np.exp(-x))
        slope = value * (1 - value)
    elif name == "tanh":
        value = np.tanh(x)
        slope = 1 - value * value
    else:
        value = np.maximum(x, 0) if name == "relu" else x
    value = value.astype(dtype).astype(x.dtype)
    return value, np.abs(value) + float(np.finfo(dtype).tiny), slope
