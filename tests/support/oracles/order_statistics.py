"""The oracle of ORDER_STATISTICS: elements of rows sorted by three keys, the last of which is the primary one."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle


@oracle
def order_statistics(attr: Any, x: AnyArray, k: AnyArray) -> list[AnyArray]:
    order = np.lexsort((~np.signbit(x), np.where(np.isnan(x), 0, x), np.isnan(x)), axis=-1)
    return [np.take_along_axis(x, order, axis=-1)[..., k.astype(np.int64)]]
