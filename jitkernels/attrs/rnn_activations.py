"""Activations of recurrent cells: their names, and their error bounds."""

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

ACTIVATIONS = ("sigmoid", "tanh", "relu", "identity")


def finite(terms: AnyArray, dtype: str) -> AnyArray:
    """Infinite where an intermediate sum may overflow, however flat the activation after it is."""
    return np.where(terms > float(np.finfo(dtype).max), np.inf, terms)


def activated(name: str, x: AnyArray, dtype: str) -> tuple[AnyArray, AnyArray, AnyArray]:
    """An activation, the magnitude that its error is relative to (more than itself if it underflows), and its slope."""
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
