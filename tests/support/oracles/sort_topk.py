"""The oracle of SORT and TOPK: indices sorted by three keys, the last of which is the primary one."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle


@oracle
def sort(attr: Any, x: AnyArray) -> list[AnyArray]:
    if x.dtype.kind != "f":
        return [np.take_along_axis(x, np.lexsort((x,), axis=-1), axis=-1)]
    order = np.lexsort((~np.signbit(x), np.where(np.isnan(x), 0, x), np.isnan(x)), axis=-1)
    return [np.take_along_axis(x, order, axis=-1)]


@oracle
def topk(attr: Any, x: AnyArray) -> list[AnyArray]:
    indices = np.broadcast_to(np.arange(attr.n), x.shape)
    order = np.lexsort((indices, -np.where(np.isnan(x), 0, x), ~np.isnan(x)), axis=-1)[:, : attr.k]
    return [np.take_along_axis(x, order, axis=-1), order]
