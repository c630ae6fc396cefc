"""The activations of recurrent cells."""

import numpy as np

from jitkernels.graph import special
from jitkernels.signature import AnyArray


def activate(name: str, x: AnyArray) -> AnyArray:
    """What references mean by the name; the sigmoid without overflow."""
    if name == "sigmoid":
        found: AnyArray = special.sigmoid(x)
        return found
    if name == "tanh":
        return np.tanh(x)
    return np.maximum(x, 0) if name == "relu" else x
