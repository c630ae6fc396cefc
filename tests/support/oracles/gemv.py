"""The oracle of GEMV."""

from typing import Any

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle, total


@oracle
def gemv(attr: Any, a: AnyArray, x: AnyArray, y: Any = None) -> list[AnyArray]:
    product = total((a.T if attr.trans else a) * x, -1)
    return [product + WIDE(attr.beta) * y if attr.beta else product]
