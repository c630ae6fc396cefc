"""The oracle of RMS_NORM and BATCH_NORM."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, total


@oracle
def rms_norm(attr: Any, x: AnyArray, scale: Any = None) -> list[AnyArray]:
    if x.size == 0:
        return [x]
    squares = total(x * x, 1)[:, np.newaxis] / WIDE(attr.n)
    y = x / np.sqrt(squares + WIDE(attr.eps))
    return [y * scale[:, np.newaxis] if attr.affine else y]


@oracle
def batch_norm(
    attr: Any, x: AnyArray, mean: AnyArray, var: AnyArray, scale: Any = None, bias: Any = None
) -> list[AnyArray]:
    y = (x - mean[:, np.newaxis]) / np.sqrt(var + WIDE(attr.eps))[:, np.newaxis]
    return [y * scale[:, np.newaxis] + bias[:, np.newaxis] if attr.affine else y]
