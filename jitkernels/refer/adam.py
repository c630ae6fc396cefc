"""NumPy references of ADAM and ADAMW."""

import numpy as np

from jitkernels.attrs.adam import AdamAttr, AdamWAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


def _step(attr: AdamAttr, start: AnyArray, arrays: tuple[AnyArray, ...]) -> None:
    """Write all results after all reads: any result may alias any input."""
    grad, mom1, mom2, *largest = arrays[: len(arrays) // 2]
    param_out, mom1_out, mom2_out, *largest_out = arrays[len(arrays) // 2 :]
    first = attr.beta1 * mom1 + (1 - attr.beta1) * grad
    second = attr.beta2 * mom2 + (1 - attr.beta2) * (grad * grad)
    used = np.maximum(largest[0], second) if largest else second
    # Numerator and denominator are both multiplied by the divisor of each root.
    shrunk = np.sqrt(1 - attr.beta2_pow, dtype=start.dtype)
    factor = np.divide(attr.lr * shrunk, 1 - attr.beta1_pow, dtype=start.dtype)
    new = start - factor * (first / (np.sqrt(used) + attr.eps * shrunk))
    param_out[...] = new
    mom1_out[...] = first
    mom2_out[...] = second
    if largest:
        largest_out[0][...] = used


@implements(AdamAttr, compiles=True)
def adam(attr: AdamAttr, param: AnyArray, *arrays: AnyArray) -> None:
    with np.errstate(all="ignore"):
        _step(attr, param, arrays)


@implements(AdamWAttr, compiles=True)
def adamw(attr: AdamWAttr, param: AnyArray, *arrays: AnyArray) -> None:
    with np.errstate(all="ignore"):
        _step(attr, param * (1 - attr.lr * attr.coeff), arrays)
