"""NumPy references of CUMSUM and HISTOGRAM."""

import numpy as np

from jitkernels.attrs.counting import CumsumAttr, HistogramAttr
from jitkernels.registry import implements
from jitkernels.signature import AnyArray


@implements(CumsumAttr)
def cumsum(attr: CumsumAttr, x: AnyArray, y: AnyArray) -> None:
    """In long double, as float64 has no wider type of NumPy's own, and sums are rounded once."""
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
