"""The oracle of TRANSPOSE, GATHER and SCATTER_ADD: element by element, or row by row."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def transpose(attr: Any, x: AnyArray) -> list[AnyArray]:
    columns = [[matrix[:, j] for j in range(attr.n)] for matrix in x]
    return [np.array(columns, WIDE).reshape(attr.batch, attr.n, attr.rows)]


@oracle
def gather(attr: Any, table: AnyArray, ids: AnyArray) -> list[AnyArray]:
    return [np.array([table[i] for i in ids], WIDE).reshape(attr.count, attr.n)]


@oracle
def scatter_add(attr: Any, table: AnyArray, ids: AnyArray, x: AnyArray) -> list[AnyArray]:
    y = table.copy()
    for i, row in zip(ids, x, strict=True):
        y[i] = y[i] + row
    return [y]
