"""ROPE, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray

MISTAKES = {
    "rope": {
        "always halves": ("if attr.interleaved", "if False"),
        "always neighbours": ("if attr.interleaved", "if True"),
        "rotated the other way": (
            "one * cos - other * sin, other * cos + one * sin",
            "one * cos + other * sin, other * cos - one * sin",
        ),
        "cosine and sine exchanged": ("one * cos - other * sin,", "one * sin - other * cos,"),
        "angles of the first position": ("one * cos -", "one * cos[:1] -"),
        "reads what it has written": (
            "    pair = one * cos - other * sin, other * cos + one * sin\n    y[..., first], y[..., second] = pair",
            "    y[..., first] = one * cos - other * sin\n    y[..., second] = other * cos + x[..., first] * sin",
        ),
        "last angle is that before it": ("one * cos -", "one * cos[:, np.maximum(numbers - (numbers % 4 == 3), 0)] -"),
    }
}


def rope(attr: Any, x: AnyArray, cos: AnyArray, sin: AnyArray, y: AnyArray) -> None:
    numbers = np.arange(attr.half)
    first, second = (2 * numbers, 2 * numbers + 1) if attr.interleaved else (numbers, numbers + attr.half)
    one, other = x[..., first].copy(), x[..., second].copy()
    pair = one * cos - other * sin, other * cos + one * sin
    y[..., first], y[..., second] = pair
