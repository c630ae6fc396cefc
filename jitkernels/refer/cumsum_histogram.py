"""NumPy references of CUMSUM and HISTOGRAM."""

import numpy as np

from jitkernels.attrs.cumsum_histogram import CumsumAttr, HistogramAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(CumsumAttr)
def cumsum(attr: CumsumAttr, x: AnyArray, y: AnyArray) -> None:
    """Compute in long double, as NumPy has no wider type for float64; sums are rounded once."""
    with np.errstate(all="ignore"):
        y[...] = np.cumsum(x.astype(attr.wide), axis=-1)


@implements(HistogramAttr)
def histogram(attr: HistogramAttr, x: AnyArray, counts: AnyArray) -> None:
    number = x.dtype.type
    inside = np.sort(x[(x >= number(attr.low)) & (x <= number(attr.high))])
    edges = np.linspace(attr.low, attr.high, attr.bins + 1, dtype=x.dtype)  # some may be equal
    below = np.searchsorted(inside, edges)
    below[-1] = inside.size
    counts[...] = np.diff(below)
