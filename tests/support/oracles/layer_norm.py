"""The oracle of LAYER_NORM."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, total


@oracle
def layer_norm(attr: Any, x: AnyArray, scale: Any = None, bias: Any = None) -> list[AnyArray]:
    """Centre each row twice, first on one of its elements, so that a constant row is exactly zero."""
    if x.size == 0:
        return [x, *[x[:, :0].sum(axis=1)] * (2 * attr.stats)]
    near = x - x[:, :1]
    centred = near - (total(near, -1) / attr.n)[:, np.newaxis]
    centred = centred - (total(centred, -1) / attr.n)[:, np.newaxis]
    variance = total(centred * centred, -1) / attr.n
    mean = total(x, -1) / attr.n
    y = centred / np.sqrt(variance + WIDE(attr.eps))[:, np.newaxis]
    y = y * scale + bias if attr.affine else y
    return [y, mean, variance] if attr.stats else [y]
