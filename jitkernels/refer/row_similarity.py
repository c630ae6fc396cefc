"""NumPy references of DOT, SQEUCLIDEAN and COSINE."""

import numpy as np

from jitkernels.attrs.row_similarity import CosineAttr, DotAttr, SqEuclideanAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(DotAttr, compiles=True)
def dot(attr: DotAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sum(x * y, axis=-1, out=z)


@implements(SqEuclideanAttr, compiles=True)
def sqeuclidean(attr: SqEuclideanAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        np.sum(np.square(x - y), axis=-1, out=z)


@implements(CosineAttr, compiles=True)
def cosine(attr: CosineAttr, x: AnyArray, y: AnyArray, z: AnyArray) -> None:
    with np.errstate(all="ignore"):
        along = np.sum(x * y, axis=-1) / np.sqrt(np.sum(x * x, axis=-1)) / np.sqrt(np.sum(y * y, axis=-1))
        np.maximum(1 - along, 0, out=z)
