"""NumPy references of TRANSPOSE, GATHER and SCATTER_ADD."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.transpose_gather_scatter import GatherAttr, ScatterAddAttr, TransposeAttr


@implements(TransposeAttr)
def transpose(attr: TransposeAttr, x: AnyArray, y: AnyArray) -> None:
    y[...] = x.swapaxes(-1, -2)


@implements(GatherAttr)
def gather(attr: GatherAttr, table: AnyArray, ids: AnyArray, y: AnyArray) -> None:
    attr.check_data((table, ids))
    y[...] = table[ids]


@implements(ScatterAddAttr)
def scatter_add(attr: ScatterAddAttr, table: AnyArray, ids: AnyArray, x: AnyArray, y: AnyArray) -> None:
    attr.check_data((table, ids))
    with np.errstate(all="ignore"):
        y[...] = table
        np.add.at(y, ids, x)
