"""The oracle of DOT, SQEUCLIDEAN and COSINE."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle, total


@oracle
def dot(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [total(x * y, -1)]


@oracle
def sqeuclidean(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    return [total(np.square(x - y), -1)]


@oracle
def cosine(attr: Any, x: AnyArray, y: AnyArray) -> list[AnyArray]:
    lengths = [np.sqrt(total(np.square(matrix), -1)) for matrix in (x, y)]
    return [np.maximum(1 - total(x * y, -1) / lengths[0] / lengths[1], 0)]
