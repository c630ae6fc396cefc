"""CDIST, and mutants of it."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from mistakes import WIDE

MISTAKES = {
    "cdist": {
        "squares and products instead of differences": (
            "np.square(differences).sum(axis=-1, dtype=WIDE)",
            "np.maximum((x * x).sum(-1)[:, None] + (y * y).sum(-1) - 2 * (x @ y.T), 0)",
        ),
        "no root": ('np.sqrt(squares) if attr.metric == "euclidean" else squares', "squares"),
        "last column of differences is lost": ("x[:, None] - y", "(x[:, None] - y)[..., : attr.d - (attr.d % 4 == 3)]"),
        "rows against themselves": ("x[:, None] - y", "x[:, None] - np.resize(x, y.shape)"),
        "cosine of the first length": ("lengths[0][:, None] * lengths[1]", "lengths[0][:, None] ** 2"),
        "similarity for distance": ("np.maximum(1 - cosines, 0)", "np.abs(cosines)"),
        "product with a sign": ("z[...] = products", "z[...] = -products"),
        "NaN is the farthest": ("np.sqrt(squares)", "np.nan_to_num(np.sqrt(squares), posinf=np.inf)"),
    }
}


def cdist(attr: Any, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    if attr.metric in ("euclidean", "sqeuclidean"):
        differences = x[:, None] - y
        squares = np.square(differences).sum(axis=-1, dtype=WIDE)
        z[...] = np.sqrt(squares) if attr.metric == "euclidean" else squares
        return
    products = (x[:, None] * y).sum(axis=-1, dtype=WIDE)
    if attr.metric == "dot":
        z[...] = products
    else:
        lengths = [np.sqrt(np.square(one).sum(axis=-1, dtype=WIDE)) for one in (x, y)]
        cosines = products / (lengths[0][:, None] * lengths[1])
        z[...] = np.maximum(1 - cosines, 0)
