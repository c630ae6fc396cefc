"""The oracle of SGD."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle


@oracle
def sgd(attr: Any, param: AnyArray, grad: AnyArray, rows: AnyArray) -> list[AnyArray]:
    result = param.copy()
    for row, step in zip(rows, WIDE(attr.lr) * grad, strict=True):
        result[row] -= step
    return [result]
