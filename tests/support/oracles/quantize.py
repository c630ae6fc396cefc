"""The oracle of QUANTIZE and DEQUANTIZE."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def quantize(attr: Any, x: AnyArray, scale: AnyArray, zero: Any = 0) -> list[AnyArray]:
    """Divide in the dtype of x, as the definition says; everything after that is exact."""
    quotient = (x.astype(attr.dtype) / scale.astype(attr.dtype)[:, np.newaxis]).astype(WIDE)
    limits = np.iinfo(attr.q_dtype)
    nearest = np.floor(quotient)
    rest = quotient - nearest
    up = (rest > 0.5) | ((rest == 0.5) & (np.fmod(nearest, 2) != 0))
    integral = np.where(np.isnan(quotient), 0, np.where(np.isinf(quotient), quotient, nearest + up))
    shifted = integral + np.reshape(np.asarray(zero, np.int64), (-1, 1))
    return [np.clip(shifted, limits.min, limits.max).astype(attr.q_dtype)]


@oracle
def dequantize(attr: Any, q: AnyArray, scale: AnyArray, zero: Any = 0) -> list[AnyArray]:
    return [(q.astype(np.int64) - np.reshape(np.asarray(zero, np.int64), (-1, 1))) * scale[:, np.newaxis]]
