"""NumPy reference of ORDER_STATISTICS."""

import numpy as np

from jitkernels.attrs.order_statistics import OrderStatisticsAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(OrderStatisticsAttr)
def order_statistics(attr: OrderStatisticsAttr, x: AnyArray, k: AnyArray, y: AnyArray) -> None:
    """Zeros are ordered by their signs, which np.sort leaves undefined."""
    attr.check_data((x, k))
    order = np.lexsort((~np.signbit(x), x), axis=-1)
    y[...] = np.take_along_axis(x, order[..., k], axis=-1)
