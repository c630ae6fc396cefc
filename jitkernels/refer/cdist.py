"""NumPy reference of CDIST."""

import numpy as np

from jitkernels.attrs.cdist import CDistAttr, squared_distances
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(CDistAttr)
def cdist(attr: CDistAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        if attr.metric == "dot":
            np.matmul(x, y.T, out=z)
        elif attr.metric == "cosine":
            x_lengths = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
            y_lengths = np.sqrt(np.sum(y * y, axis=-1))
            np.maximum(1 - x @ y.T / x_lengths / y_lengths, 0, out=z)
        elif attr.metric == "euclidean":
            np.sqrt(squared_distances(x, y), out=z)
        else:
            z[...] = squared_distances(x, y)
