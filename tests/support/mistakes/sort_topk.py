"""SORT and TOPK, and mutants of them."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "sort": {
        "descending": ("keys.sort(axis=-1)", "keys.sort(axis=-1); keys = keys[:, ::-1]"),
        "NaN comes first": ("np.where(np.isnan(x), largest, ordered)", "np.where(np.isnan(x), -largest, ordered)"),
        "negative numbers are reversed": ("bits ^ (bits >> top & largest)", "bits"),
        "columns are sorted": ("keys.sort(axis=-1)", "keys.sort(axis=0)"),
        "the last element stays": ("keys.sort(axis=-1)", "keys[:, :-1].sort(axis=-1)"),
        "negative zeros are lost": ("bits = x.view", "bits = (x + 0).view"),
    },
    "topk": {
        "the smallest": ("key=rank, reverse=True", "key=rank"),
        "of equal ones the last": ("(value, -j)", "(value, j)"),
        "NaN is the least": ('float("inf")', '-float("inf")'),
        "in order of places": ("[: attr.k]", "[: attr.k]\n        places.sort()"),
        "one less": ("[: attr.k]", "[: attr.k - 1] + [0] * min(attr.k, 1)"),
        "places begin at 1": ("indices[i] = places", "indices[i] = [j + 1 for j in places]"),
        "places of the whole array": ("indices[i] = places", "indices[i] = [i * attr.n + j for j in places]"),
    },
}


def sort(attr: Any, x: AnyArray, y: AnyArray) -> None:
    is_float, keys = x.dtype.kind == "f", x.copy()
    if is_float:
        bits = x.view(f"i{x.itemsize}")
        largest, top = np.iinfo(bits.dtype).max, 8 * x.itemsize - 1
        ordered = bits ^ (bits >> top & largest)
        keys = np.where(np.isnan(x), largest, ordered)
    keys.sort(axis=-1)
    y[...] = (keys ^ (keys >> top & largest)).view(x.dtype) if is_float else keys


def topk(attr: Any, x: AnyArray, values: AnyArray, indices: AnyArray) -> None:
    for i, row in enumerate(x):
        missing = np.isnan(row).tolist()
        numbers = [float("inf") if number != number else number for number in row.tolist()]

        def rank(j: int) -> Any:
            value = numbers[j]  # noqa: B023  # used at once
            return (missing[j] and value > 0, (value, -j))  # noqa: B023

        places = sorted(range(attr.n), key=rank, reverse=True)[: attr.k]
        indices[i] = places
        values[i] = row[places]
