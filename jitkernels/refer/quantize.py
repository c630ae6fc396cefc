"""NumPy references of QUANTIZE and DEQUANTIZE."""

import numpy as np

from jitkernels.attrs.quantize import DequantizeAttr, QuantizeAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(QuantizeAttr)
def quantize(attr: QuantizeAttr, x: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, q = rest
    low, high = (0, 255) if attr.q_dtype == "uint8" else (-128, 127)
    with np.errstate(all="ignore"):
        whole = np.rint(x / scale[:, np.newaxis])
        whole = np.where(np.isnan(whole), x.dtype.type(0), whole)
        if zero:
            whole = whole + zero[0].astype(x.dtype)[:, np.newaxis]
        q[...] = np.minimum(np.maximum(whole, x.dtype.type(low)), x.dtype.type(high)).astype(q.dtype)


@implements(DequantizeAttr, compiles=True)
def dequantize(attr: DequantizeAttr, q: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, y = rest
    whole = q.astype(y.dtype)
    with np.errstate(all="ignore"):
        if zero:
            whole = whole - zero[0].astype(y.dtype)[:, np.newaxis]
        np.multiply(whole, scale[:, np.newaxis], out=y)
