"""QUANTIZE and DEQUANTIZE, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "quantize": {
        "multiplies by the inverse": ("x / scale[:, None]", "x * (1 / scale[:, None])"),
        "halves are rounded up": ("np.rint(quotient)", "np.floor(quotient + x.dtype.type(0.5))"),
        "cuts what is behind the point": ("np.rint(quotient)", "np.trunc(quotient)"),
        "wraps where it should saturate": ("np.clip(whole, limits.min, limits.max)", "(np.nan_to_num(whole) % 256)"),
        "one less at the lower end": ("limits.min, limits.max)", "limits.min + 1, limits.max)"),
        "zero point is forgotten": ("whole += zero[0].astype(x.dtype)[:, None]", "pass"),
        "NaN becomes the lowest": ("np.isnan(quotient), 0, quotient", "np.isnan(quotient), -np.inf, quotient"),
        "first scale for all rows": ("x / scale[:, None]", "x / scale[:1, None]"),
        "zero point is added before it is rounded": (
            "whole = np.rint(quotient)\n    if zero:\n        whole += zero[0].astype(x.dtype)[:, None]",
            "whole = quotient + (zero[0].astype('f8')[:, None] if zero else 0)\n    whole = np.rint(whole)",
        ),
        "last ones are forgotten": (
            "x / scale[:, None]",
            "np.where(np.arange(attr.n) < attr.n - attr.n % 8, x, 0) / scale[:, None]",
        ),
    },
    "dequantize": {
        "zero point is forgotten": ("whole = whole - zero[0].astype(y.dtype)[:, None]", "pass"),
        "difference wraps": (
            "whole = whole - zero[0].astype(y.dtype)[:, None]",
            "whole = (q - zero[0][:, None]).astype(y.dtype)",
        ),
        "unsigned is read as signed": ("q.astype(y.dtype)", "q.view(np.int8).astype(y.dtype)"),
        "first scale for all rows": ("scale[:, None]", "scale[:1, None]"),
    },
}  # fmt: skip


def quantize(attr: Any, x: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, q = rest
    limits = np.iinfo(q.dtype)
    quotient = x / scale[:, None]
    quotient = np.where(np.isnan(quotient), 0, quotient)
    whole = np.rint(quotient)
    if zero:
        whole += zero[0].astype(x.dtype)[:, None]
    q[...] = np.clip(whole, limits.min, limits.max).astype(q.dtype)


def dequantize(attr: Any, q: AnyArray, scale: AnyArray, *rest: AnyArray) -> None:
    *zero, y = rest
    whole = q.astype(y.dtype)
    if zero:
        whole = whole - zero[0].astype(y.dtype)[:, None]
    y[...] = whole * scale[:, None]
