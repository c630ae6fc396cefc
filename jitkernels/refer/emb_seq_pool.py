"""NumPy reference of EMB_SEQ_POOL."""

from typing import Any

import numpy as np

from jitkernels.attrs.emb_seq_pool import EmbSeqPoolAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(EmbSeqPoolAttr)
def emb_seq_pool(attr: EmbSeqPoolAttr, table: AnyArray, ids: AnyArray, out: AnyArray) -> None:
    pools: dict[str, Any] = {"sum": np.sum, "mean": np.mean, "max": np.max}
    with np.errstate(all="ignore"):
        rows = np.moveaxis(table[ids], 0, -1).copy()  # NumPy adds pairwise only along the last axis
        pools[attr.pool](rows, axis=-1, out=out.reshape(attr.idx_w, attr.table_w))
