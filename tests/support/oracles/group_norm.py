"""The truth about GROUP_NORM."""

from typing import Any

import numpy as np

from jitkernels.signature import AnyArray
from oracles import WIDE, oracle, total


@oracle
def group_norm(attr: Any, x: AnyArray, scale: Any = None, bias: Any = None) -> list[AnyArray]:
    """Each group centred twice, the first time on an element, so that a constant one is exactly zero."""
    if x.size == 0:
        return [x]
    groups = x.reshape(attr.rows * attr.groups, -1)
    n = WIDE(groups.shape[1])
    near = groups - groups[:, :1]
    centred = near - (total(near, -1) / n)[:, np.newaxis]
    centred = centred - (total(centred, -1) / n)[:, np.newaxis]
    variance = total(centred * centred, -1) / n
    y = (centred / np.sqrt(variance + WIDE(attr.eps))[:, np.newaxis]).reshape(x.shape)
    return [y * scale[:, np.newaxis] + bias[:, np.newaxis] if attr.affine else y]
