"""NumPy reference of SEQ_POOL."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.seq_pool import SeqPoolAttr


@implements(SeqPoolAttr)
def seq_pool(attr: SeqPoolAttr, x: AnyArray, y: AnyArray) -> None:
    with np.errstate(all="ignore"):
        if attr.pool == "max":
            np.max(x, axis=0, out=y)
        else:
            np.sum(x.T.copy(), axis=-1, out=y)  # NumPy adds pairwise only along the last axis
            if attr.pool != "sum":
                y /= attr.h if attr.pool == "mean" else attr.h**0.5
