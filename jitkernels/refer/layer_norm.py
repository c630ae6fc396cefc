"""NumPy reference of LAYER_NORM, in the next wider type, whose squares do not overflow."""

import numpy as np

from jitkernels.attrs.layer_norm import LayerNormAttr
from jitkernels.attrs.schema.registry import implements
from jitkernels.attrs.schema.signature import AnyArray


@implements(LayerNormAttr)
def layer_norm(attr: LayerNormAttr, x: AnyArray, *rest: AnyArray) -> None:
    if attr.rows == 0:
        return
    affine, (y, *stats) = rest[: 2 * attr.affine], rest[2 * attr.affine :]
    with np.errstate(all="ignore"):
        wide: AnyArray = x.astype(attr.wide)
        mean: AnyArray = wide.mean(axis=-1, keepdims=True)
        off: AnyArray = wide - mean
        if stats:
            stats[0][...] = mean[:, 0]
        mean = mean + off.mean(axis=-1, keepdims=True)
        centred: AnyArray = wide - mean  # of a constant row, exactly zero
        squares: AnyArray = centred * centred
        variance: AnyArray = squares.mean(axis=-1, keepdims=True)
        normalised = centred / np.sqrt(variance + attr.eps)
        if stats:
            stats[1][...] = variance[:, 0]
        y[...] = normalised * affine[0] + affine[1] if affine else normalised
