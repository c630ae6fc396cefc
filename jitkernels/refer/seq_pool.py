"""NumPy reference of SEQ_POOL."""

import numpy as np

from jitkernels.attrs.seq_pool import SeqPoolAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(SeqPoolAttr)
def seq_pool(attr: SeqPoolAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        if attr.pool == "max":
            np.max(x, axis=0, out=y)
        else:
            np.sum(x.T.copy(), axis=-1, out=y)  # along the last axis NumPy adds in pairs, and only there
            if attr.pool != "sum":
                y /= attr.h if attr.pool == "mean" else attr.h**0.5
