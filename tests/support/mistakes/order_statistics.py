"""ORDER_STATISTICS, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "order_statistics": {
        "from the largest": ("ordered[:, np.clip(index", "ordered[:, np.clip(attr.n - 1 - index"),
        "the next one": ("ordered[:, np.clip(index", "ordered[:, np.clip(index + 1"),
        "of the first row": ("ordered[:, np.clip(index", "ordered[:1, np.clip(index"),
        "not sorted": ("keys.sort(axis=-1)", "pass"),
        "NaN comes first": ("np.where(np.isnan(x), largest, ordered)", "np.where(np.isnan(x), -largest, ordered)"),
        "negative numbers are reversed": ("bits ^ (bits >> top & largest)", "bits"),
        "indices are sorted": ("enumerate(k)", "enumerate(np.sort(k))"),
        "the first index of all": ("enumerate(k)", "enumerate(k[:1].repeat(k.size))"),
        "negative zeros are lost": ("bits = x.view", "bits = (x + 0).view"),
        "indices are not checked": ("    attr.check_data((x, k))", ""),
        "all indices but the last are checked": ("(x, k))", "(x, k[:-1]))"),
        "negative indices are let through": ("(x, k))", "(x, np.maximum(k, 0)))"),
        "writes before it checks": ("    attr.check_data", "    y[...] = 0\n    attr.check_data"),
    }
}


def order_statistics(attr: Any, x: AnyArray, k: AnyArray, y: AnyArray) -> None:
    attr.check_data((x, k))
    bits = x.view(f"i{x.itemsize}")
    largest, top = np.iinfo(bits.dtype).max, 8 * x.itemsize - 1
    ordered = bits ^ (bits >> top & largest)
    keys = np.where(np.isnan(x), largest, ordered)
    keys.sort(axis=-1)
    ordered = (keys ^ (keys >> top & largest)).view(x.dtype)
    for i, index in enumerate(k):
        y[:, i] = ordered[:, np.clip(index, 0, attr.n - 1)]
