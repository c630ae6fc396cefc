"""NumPy references of SORT and TOPK."""

import numpy as np

from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray
from jitkernels.attrs.sort_topk import SortAttr, TopkAttr


@implements(SortAttr)
def sort(attr: SortAttr, x: AnyArray, y: AnyArray) -> None:
    """Zeros are ordered by their signs, which np.sort leaves undefined."""
    if x.dtype.kind != "f":
        y[...] = np.sort(x, axis=-1)
        return
    y[...] = np.take_along_axis(x, np.lexsort((~np.signbit(x), x), axis=-1), axis=-1)


@implements(TopkAttr)
def topk(attr: TopkAttr, x: AnyArray, values: AnyArray, indices: AnyArray) -> None:
    """Ascending from behind, so that of equal ones the last comes last."""
    order = attr.n - 1 - np.argsort(x[:, ::-1], axis=-1, kind="stable")[:, ::-1]
    indices[...] = order[:, : attr.k]
    values[...] = np.take_along_axis(x, indices, axis=-1)
