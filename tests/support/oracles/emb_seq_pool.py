"""The oracle of EMB_SEQ_POOL."""

from typing import Any

import numpy as np

from jitkernels.attrs.schema.signature import AnyArray
from oracles import WIDE, oracle
from oracles.seq_pool import pooled


@oracle
def emb_seq_pool(attr: Any, table: AnyArray, ids: AnyArray) -> list[AnyArray]:
    if ids.size == 0:
        return [np.zeros(attr.idx_w * attr.table_w, WIDE)]
    return [pooled(attr.pool, table[ids.T]).reshape(-1)]
