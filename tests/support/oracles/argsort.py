"""The oracle of ARGSORT: indices sorted by two keys, those of equal elements by themselves."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import oracle


@oracle
def argsort(attr: Any, x: AnyArray) -> list[AnyArray]:
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)
    indices = np.broadcast_to(np.arange(attr.n), x.shape)
    return [np.lexsort((indices, np.where(missing, 0, x), missing), axis=-1)]
